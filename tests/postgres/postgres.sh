#!/usr/bin/env bash
# A private PostgreSQL server for tests, in a folder of its own.
#
#   postgres.sh start FOLDER PORT   make the cluster where it is not there yet, for
#                                   a port, which it keeps; start it, print its DSN
#   postgres.sh crash FOLDER        stop it as a crash does (pg_ctl -m immediate)
#   postgres.sh stop FOLDER         stop it
#   postgres.sh wipe FOLDER         stop it and remove the folder
#
# Needs PostgreSQL's server programs: on Debian and Ubuntu `apt-get install
# postgresql`. The server listens on 127.0.0.1 only. PostgreSQL refuses to run as
# root: as root everything runs as the user postgres, or nobody.
set -euo pipefail

usage="usage: postgres.sh start FOLDER PORT | crash FOLDER | stop FOLDER | wipe FOLDER"
action=${1:?$usage}
folder=${2:?$usage}
[[ $folder == /* ]] || folder=$PWD/$folder
data=$folder/data
cd / # whoever runs the server may not be let into the folder of the caller

bin=$(dirname "$(ls -1 /usr/lib/postgresql/*/bin/pg_ctl /usr/local/pgsql/bin/pg_ctl 2>/dev/null | sort -V | tail -n 1 || true)" 2>/dev/null)
if [ ! -x "$bin/pg_ctl" ]; then
	bin=$(dirname "$(command -v pg_ctl || echo none/none)")
fi
if [ ! -x "$bin/pg_ctl" ]; then
	echo "PostgreSQL's server programs are not there: install them (Debian and Ubuntu: apt-get install postgresql)" >&2
	exit 1
fi

# as runs a command as somebody who may run the server.
as() {
	if [ "$(id -u)" != 0 ]; then
		"$@"
		return
	fi
	local user=postgres
	id -u "$user" >/dev/null 2>&1 || user=nobody
	if command -v setpriv >/dev/null; then
		setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups -- "$@"
	elif command -v runuser >/dev/null; then
		runuser -u "$user" -- "$@"
	else
		su -s /bin/sh "$user" -c 'exec "$0" "$@"' -- "$@"
	fi
}

make_cluster() {
	mkdir -p "$folder"
	if [ "$(id -u)" = 0 ]; then
		local user=postgres
		id -u "$user" >/dev/null 2>&1 || user=nobody
		chown "$user" "$folder"
	fi
	chmod 755 "$folder"
	as "$bin/initdb" -D "$data" -U tester -A trust --no-sync -E UTF8 --locale=C >"$folder.initdb.log" 2>&1 ||
		{ cat "$folder.initdb.log" >&2; exit 1; }
	rm -f "$folder.initdb.log"
	# A password for one role, so that a wrong one can be tested.
	printf 'host all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n' | as tee "$data/pg_hba.conf" >/dev/null
	as tee -a "$data/postgresql.conf" >/dev/null <<-CONF
		listen_addresses = '127.0.0.1'
		unix_socket_directories = ''
		port = $1
		max_connections = 50
		shared_buffers = 32MB
		deadlock_timeout = 100ms
		checkpoint_timeout = 30s
	CONF
}

port() { sed -n 's/^port = \([0-9]*\).*/\1/p' "$data/postgresql.conf" | tail -n 1; }

start() {
	[ -f "$data/PG_VERSION" ] || make_cluster "${1:?$usage}"
	local try
	for try in {1..20}; do # what is left of a crashed server may still be ending
		if as "$bin/pg_ctl" -D "$data" -l "$data/server.log" -w -t 60 start >/dev/null 2>&1; then
			echo "postgres://tester@127.0.0.1:$(port)/postgres?sslmode=disable"
			return
		fi
		sleep 0.5
	done
	tail -n 40 "$data/server.log" >&2
	echo "the server does not start" >&2
	exit 1
}

stop() {
	if [ -f "$data/postmaster.pid" ]; then
		as "$bin/pg_ctl" -D "$data" -w -t 60 -m "$1" stop >/dev/null 2>&1 || true
	fi
}

case $action in
start) start "${3:-}" ;;
crash) stop immediate ;;
stop) stop fast ;;
wipe)
	stop immediate
	rm -rf -- "$folder"
	;;
*)
	echo "$usage" >&2
	exit 2
	;;
esac
