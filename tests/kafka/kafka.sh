#!/usr/bin/env bash
# One Kafka broker (KRaft, broker and controller in one process) for tests. See README.md.
#   kafka.sh start | stop | status | topic NAME PARTITIONS | delete NAME | list | wipe
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${KAFKA_DIR:=${TMPDIR:-/tmp}/kafka-test-$(id -u)}"   # all state: jars, data, log, pid
: "${KAFKA_PORT:=19092}"                                # client port on 127.0.0.1
: "${KAFKA_CONTROLLER_PORT:=$((KAFKA_PORT + 1))}"
: "${KAFKA_JARS:=$KAFKA_DIR/jars}"                      # may be shared between several KAFKA_DIR
: "${KAFKA_HEAP:=512m}"
: "${KAFKA_START_TIMEOUT:=90}"                          # seconds
mkdir -p "$KAFKA_DIR"
KAFKA_DIR=$(cd "$KAFKA_DIR" && pwd)
pidfile=$KAFKA_DIR/broker.pid
log=$KAFKA_DIR/broker.log
conf=$KAFKA_DIR/server.properties
data=$KAFKA_DIR/data
addr=127.0.0.1:$KAFKA_PORT

die() { echo "kafka.sh: $*" >&2; exit 1; }
say() { echo "kafka.sh: $*" >&2; }

# The recorded process, if it is still our broker and not another process with that number.
broker_pid() {
  local pid args
  pid=$(cat "$pidfile" 2>/dev/null) || return 1
  [[ $pid =~ ^[0-9]+$ ]] && kill -0 "$pid" 2>/dev/null || return 1
  if [[ -r /proc/$pid/cmdline ]]; then args=$(tr '\0' ' ' <"/proc/$pid/cmdline"); else args=$(ps -o args= -p "$pid"); fi
  [[ $args == *kafka.Kafka*"$conf"* ]] || return 1
  echo "$pid"
}

# Sends one ApiVersions request and checks that an answer with the same correlation id comes back.
answers() {
  local got
  got=$(
    exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$KAFKA_PORT" || exit 1
    printf '\0\0\0\012\0\022\0\0\0\0\0\007\377\377' >&3
    timeout 3 head -c 8 <&3 | od -An -tx1 | tr -d ' \n'
  ) || return 1
  [[ ${got:8} == 00000007 ]]
}

port_open() { (exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$1"); }

jars() {
  local want
  want=$(cksum <"$here/pom.xml")
  [[ $(cat "$KAFKA_JARS/.complete" 2>/dev/null) == "$want" ]] && return
  command -v mvn >/dev/null || die "Maven (mvn) is needed once, to resolve the jars"
  mkdir -p "$(dirname "$KAFKA_JARS")"
  if command -v flock >/dev/null; then # the jars may be shared with another folder that starts now
    exec 8>"$KAFKA_JARS.lock"
    flock -w 300 8 || die "another kafka.sh holds $KAFKA_JARS.lock"
    if [[ $(cat "$KAFKA_JARS/.complete" 2>/dev/null) == "$want" ]]; then exec 8>&-; return; fi
  fi
  say "resolving jars"
  rm -rf "$KAFKA_JARS"
  mkdir -p "$KAFKA_JARS"
  # Two tries: a first download can be cut off.
  for try in 1 2; do
    mvn -q -B -f "$here/pom.xml" package "-Djars=$KAFKA_JARS" >"$KAFKA_DIR/mvn.log" 2>&1 && break
    [[ $try == 2 ]] && { tail -20 "$KAFKA_DIR/mvn.log" >&2; die "Maven could not resolve the jars"; }
  done
  echo "$want" >"$KAFKA_JARS/.complete"
  if [[ -e /dev/fd/8 ]]; then exec 8>&-; fi
}

jvm() { # short-lived command-line tools
  java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmx256m -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
    -cp "$KAFKA_JARS/*" "$@"
}

write_conf() {
  cat >"$conf" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$KAFKA_CONTROLLER_PORT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listeners=PLAINTEXT://$addr,CONTROLLER://127.0.0.1:$KAFKA_CONTROLLER_PORT
advertised.listeners=PLAINTEXT://$addr
log.dirs=$data
auto.create.topics.enable=false
# one node: nothing to replicate, few internal partitions, groups form at once
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
# records may carry any event time: never delete or refuse them for it
log.retention.ms=-1
log.retention.bytes=-1
log.message.timestamp.after.max.ms=9223372036854775807
log.cleaner.dedupe.buffer.size=16777216
CONF
  [[ -n ${KAFKA_CONF:-} ]] && printf '%s\n' "$KAFKA_CONF" >>"$conf"
  return 0
}

start() {
  local pid i
  if pid=$(broker_pid) && answers; then say "already running on $addr (pid $pid)"; return; fi
  if pid=$(broker_pid); then say "process $pid is up but does not answer: restarting it"; stop_now; fi
  for i in "$KAFKA_PORT" "$KAFKA_CONTROLLER_PORT"; do
    port_open "$i" && die "port $i on 127.0.0.1 is taken by another process (set KAFKA_PORT)"
  done
  command -v java >/dev/null || die "Java 17 or newer is needed"
  jars
  write_conf
  if [[ ! -f $data/meta.properties ]]; then
    rm -rf "$data"
    local id
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' 'AB' | tr -d '=\n')
    jvm kafka.tools.StorageTool format -t "$id" -c "$conf" >"$KAFKA_DIR/format.log" 2>&1 ||
      { cat "$KAFKA_DIR/format.log" >&2; die "could not format $data"; }
  fi
  local detach=nohup
  command -v setsid >/dev/null && detach=setsid
  # shellcheck disable=SC2086
  $detach java "-Xms128m" "-Xmx$KAFKA_HEAP" -XX:+UseSerialGC -Djava.awt.headless=true \
    -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -Dorg.slf4j.simpleLogger.showDateTime=true \
    -Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS ${KAFKA_JAVA_OPTS:-} \
    -cp "$KAFKA_JARS/*" kafka.Kafka "$conf" >"$log" 2>&1 </dev/null 9>&- &
  pid=$!
  echo "$pid" >"$pidfile"
  for ((i = 0; i < KAFKA_START_TIMEOUT * 5; i++)); do
    if answers; then say "ready on $addr (pid $pid)"; return; fi
    kill -0 "$pid" 2>/dev/null || { tail -30 "$log" >&2; rm -f "$pidfile"; die "the broker ended at start, log: $log"; }
    sleep 0.2
  done
  tail -30 "$log" >&2
  stop_now
  die "no answer on $addr after $KAFKA_START_TIMEOUT s"
}

stop_now() {
  local pid i
  if ! pid=$(broker_pid); then rm -f "$pidfile"; say "not running"; return; fi
  kill "$pid" 2>/dev/null || true
  for ((i = 0; i < 150; i++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.2
  done
  if kill -0 "$pid" 2>/dev/null; then say "pid $pid did not stop in 30 s: killing it"; kill -9 "$pid" || true; sleep 0.5; fi
  rm -f "$pidfile"
  say "stopped"
}

topics() { answers || die "no broker answers on $addr"; jvm org.apache.kafka.tools.TopicCommand --bootstrap-server "$addr" "$@"; }

cmd=${1:-}
case $cmd in
start | stop | wipe) # one of these at a time for a folder
  if command -v flock >/dev/null; then
    exec 9>"$KAFKA_DIR/lock"
    flock -w 300 9 || die "another kafka.sh holds $KAFKA_DIR/lock"
  fi
  ;;
esac
case $cmd in
start) start ;;
stop) stop_now ;;
wipe) stop_now; rm -rf "$data" "$conf" "$log" "$KAFKA_DIR/format.log" ;;
status) if pid=$(broker_pid) && answers; then echo "$addr pid $pid"; else echo "not running"; exit 3; fi ;;
topic)
  [[ $# == 3 ]] || die "usage: kafka.sh topic NAME PARTITIONS"
  topics --create --if-not-exists --topic "$2" --partitions "$3" --replication-factor 1
  have=$(topics --describe --topic "$2" | sed -n 's/.*PartitionCount: *\([0-9]*\).*/\1/p' | head -1)
  [[ $have == "$3" ]] || die "topic $2 exists with ${have:-unknown} partitions, not $3"
  ;;
delete) [[ $# == 2 ]] || die "usage: kafka.sh delete NAME"; topics --delete --if-exists --topic "$2" ;;
list) topics --list ;;
*) sed -n '2,3s/^# *//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
