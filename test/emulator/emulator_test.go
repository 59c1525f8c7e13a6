//go:build emulator

package emulator_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) {
	if os.Getenv("EMULATOR_TEST_ORPHAN") != "" {
		runOrphan()
	}
	emulator.Main(m)
}

func TestShared_IsOneProcessThatKeepsNumbersOf38Digits(t *testing.T) {
	p := emulator.Shared(t)
	if again := emulator.Shared(t); again != p {
		t.Fatalf("a second call started another emulator: %s and %s", p.Endpoint(), again.Endpoint())
	}
	const digits = "12345678901234567890123456789012345678"
	client := dynamodb.NewFromConfig(p.AWSConfig())
	numbers := "numbers-" + rand.Text()
	createTable(t, client, numbers)
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &numbers, Item: map[string]ddbtypes.AttributeValue{
		"id": &ddbtypes.AttributeValueMemberS{Value: "a"},
		"n":  &ddbtypes.AttributeValueMemberN{Value: digits[:37] + "0"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:                 &numbers,
		Key:                       map[string]ddbtypes.AttributeValue{"id": &ddbtypes.AttributeValueMemberS{Value: "a"}},
		UpdateExpression:          aws.String("SET n = n + :d"),
		ExpressionAttributeValues: map[string]ddbtypes.AttributeValue{":d": &ddbtypes.AttributeValueMemberN{Value: "8"}},
		ReturnValues:              ddbtypes.ReturnValueAllNew,
	})
	if err != nil {
		t.Fatal(err)
	}
	n, ok := got.Attributes["n"].(*ddbtypes.AttributeValueMemberN)
	if !ok || n.Value != digits {
		t.Fatalf("sum is %v, want %s", got.Attributes["n"], digits)
	}
}

func TestStart_ListensOnLoopbackOnlyAndHidesTheCallersEnvironment(t *testing.T) {
	t.Setenv("LONGSHORE_TEST_CANARY", "must-not-leak")
	p := emulator.ForTest(t, emulator.Options{})

	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(env, []byte("CANARY")) {
		t.Error("the emulator, and so every function, sees the caller's environment")
	}
	if want := "AWS_ENDPOINT_URL=" + p.Endpoint(); !slices.Contains(strings.Split(string(env), "\x00"), want) {
		t.Errorf("functions would not find the emulator: no %s in its environment", want)
	}
	addrs := listening(t, p.PID())
	if len(addrs) == 0 {
		t.Error("found no listening socket of the emulator: the look-up is wrong")
	}
	for _, a := range addrs {
		if !net.ParseIP(a).IsLoopback() {
			t.Errorf("the emulator listens on %s", a)
		}
	}
}

func TestStop_EndsTheFunctionsAndRemovesTheData(t *testing.T) {
	p := emulator.ForTest(t, emulator.Options{})
	startSleepingFunction(t, p)
	waitFor(t, "the function to run in the emulator's process group", func() bool { return len(group(p.PID())) >= 2 })

	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the process group to be empty", func() bool { return len(group(p.PID())) == 0 })
	if _, err := os.Stat(filepath.Dir(p.LogFile())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data folder is still there: %v", err)
	}
}

func TestStart_EmulatorEndsWithACallerThatWasKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EMULATOR_TEST_ORPHAN=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var data string
	if _, err := fmt.Fscan(bufio.NewReader(out), &pid, &data); err != nil {
		t.Fatalf("read what the caller started: %v", err)
	}
	if len(group(pid)) == 0 {
		t.Fatal("no emulator is running")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	waitFor(t, "the orphan to end", func() bool { return len(group(pid)) == 0 })
	if _, err := os.Stat(data); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("data folder is still there: %v", err)
	}
}

// runOrphan is the caller of the test above: it starts an emulator, tells its process id and
// data folder, and waits to be killed.
func runOrphan() {
	p, err := emulator.Start(context.Background(), emulator.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.PID(), filepath.Dir(p.LogFile()))
	select {}
}

func TestStart_PortInUseNamesThePort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = emulator.Start(t.Context(), emulator.Options{Port: port})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d is in use", port)) {
		t.Fatalf("error is %v", err)
	}
}

func TestStart_FailureShowsTheLogAndLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := emulator.Start(ctx, emulator.Options{Dir: dir})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v", err)
	}
}

func TestDetached_OutlivesAndKeepsItsStateUntilStopped(t *testing.T) {
	dir := t.TempDir()
	opts := emulator.Options{Dir: dir, PIDFile: filepath.Join(dir, "pid"), Detach: true, Persist: true}
	p, err := emulator.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = emulator.StopDetached(context.Background(), opts.PIDFile) })
	if pid, err := emulator.Running(opts.PIDFile); err != nil || pid != p.PID() {
		t.Fatalf("running is %d, %v; want %d", pid, err, p.PID())
	}
	createTable(t, dynamodb.NewFromConfig(p.AWSConfig()), "kept")

	for range 2 { // the second finds it already so
		if err := emulator.StopDetached(t.Context(), opts.PIDFile); err != nil {
			t.Fatal(err)
		}
	}
	if left := group(p.PID()); len(left) != 0 {
		t.Fatalf("processes %v are left", left)
	}
	if pid, err := emulator.Running(opts.PIDFile); err != nil || pid != 0 {
		t.Fatalf("running after the stop is %d, %v", pid, err)
	}
	again, err := emulator.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := dynamodb.NewFromConfig(again.AWSConfig()).ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || !slices.Contains(tables.TableNames, "kept") {
		t.Fatalf("tables after a restart are %v, %v", tables, err)
	}
	if err := again.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	tables, err = dynamodb.NewFromConfig(again.AWSConfig()).ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil || len(tables.TableNames) != 0 {
		t.Fatalf("tables after a reset are %v, %v", tables, err)
	}
}

func createTable(t *testing.T, client *dynamodb.Client, name string) {
	t.Helper()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          ddbtypes.BillingModePayPerRequest,
		KeySchema:            []ddbtypes.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: ddbtypes.KeyTypeHash}},
		AttributeDefinitions: []ddbtypes.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: ddbtypes.ScalarAttributeTypeS}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// startSleepingFunction invokes a function that never asks for its event, so that its process stays.
func startSleepingFunction(t *testing.T, p *emulator.Process) {
	t.Helper()
	var code bytes.Buffer
	z := zip.NewWriter(&code)
	h := &zip.FileHeader{Name: "bootstrap", Method: zip.Store}
	h.SetMode(0o755)
	w, err := z.CreateHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("#!/bin/sh\nexec sleep 1000\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	client := lambda.NewFromConfig(p.AWSConfig())
	_, err = client.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("sleeper"),
		Runtime:      lambdatypes.RuntimeProvidedal2023,
		Handler:      aws.String("bootstrap"),
		Role:         aws.String("arn:aws:iam::" + emulator.Account + ":role/any"),
		Code:         &lambdatypes.FunctionCode{ZipFile: code.Bytes()},
		Timeout:      aws.Int32(60),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("sleeper"), InvocationType: lambdatypes.InvocationTypeEvent})
	if err != nil {
		t.Fatal(err)
	}
}

// group lists the processes of a process group that have not ended.
func group(pgid int) []int {
	var members []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // ended meanwhile
		}
		// pid (command) state parent group …; the command may hold anything, parentheses too
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if fields[2] == strconv.Itoa(pgid) && fields[0] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			members = append(members, pid)
		}
	}
	return members
}

// listening returns the addresses on which a process listens.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	sockets := map[string]bool{}
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	var addrs []string
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !sockets[f[9]] { // 0A is LISTEN
				continue
			}
			addrs = append(addrs, parseAddress(t, strings.Split(f[1], ":")[0]).String())
		}
	}
	return addrs
}

// parseAddress reads the kernel's way of writing an address: 32-bit words in host order.
func parseAddress(t *testing.T, hex string) net.IP {
	t.Helper()
	var ip net.IP
	for i := 0; i < len(hex); i += 8 {
		word, err := strconv.ParseUint(hex[i:i+8], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		ip = binary.NativeEndian.AppendUint32(ip, uint32(word))
	}
	return ip
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
