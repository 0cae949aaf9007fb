package broker

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/connect-windowed/connect-windowed/tests/ports"
)

// Real is Apache Kafka in a process of its own.
type Real struct {
	dir  string
	port int
	env  []string
}

// script is kafka.sh beside this package.
func script() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(filepath.Dir(file)), "kafka.sh")
}

// StartReal starts a broker with its data in a folder; lines of conf are added to
// its properties, with $PORT and $CONTROLLER_PORT for its ports. The jars are shared
// by all brokers of this user.
func StartReal(dir string, conf ...string) (*Real, error) {
	free, err := ports.Free(2)
	if err != nil {
		return nil, err
	}
	r := &Real{dir: dir, port: free[0]}
	conf = append([]string{"group.min.session.timeout.ms=100"}, conf...)
	r.env = append(os.Environ(), "KAFKA_DIR="+dir, "KAFKA_PORT="+strconv.Itoa(free[0]), "KAFKA_CONTROLLER_PORT="+strconv.Itoa(free[1]))
	ours := strings.NewReplacer("$PORT", strconv.Itoa(free[0]), "$CONTROLLER_PORT", strconv.Itoa(free[1]))
	r.env = append(r.env, "KAFKA_CONF="+ours.Replace(strings.Join(conf, "\n")))
	if os.Getenv("KAFKA_JARS") == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		r.env = append(r.env, "KAFKA_JARS="+filepath.Join(cache, "connect-windowed", "kafka-jars"))
	}
	return r, r.Start()
}

// Addr implements Broker.
func (r *Real) Addr() string { return ports.Local(r.port) }

// Start implements Broker.
func (r *Real) Start() error { return r.run("start") }

// Stop implements Broker.
func (r *Real) Stop() error { return r.run("stop") }

// Kill implements Broker.
func (r *Real) Kill() error {
	text, err := os.ReadFile(filepath.Join(r.dir, "broker.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	// It is nobody's child here, and may stay a zombie: its end shows at the port.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		conn, err := net.DialTimeout("tcp", r.Addr(), time.Second)
		if err != nil {
			return nil
		}
		_ = conn.Close()
	}
	return fmt.Errorf("broker %d does not die", pid)
}

func (r *Real) run(command string) error {
	cmd := exec.Command("bash", script(), command)
	cmd.Env = r.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kafka.sh %s: %w\n%s", command, err, out.Bytes())
	}
	return nil
}
