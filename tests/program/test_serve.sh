#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# mha serve: who is answered, what is refused, and that the answers are the data of "mha view". How
# the page behaves is tested in tests/page.
. "$(dirname "$0")/harness.bash"
unset MHA_MODEL
cd "$scratch" || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; wait; rm -rf "$scratch"' EXIT

exits 0 serve --help
golden help_serve
exits 2 serve --port 65536
exits 2 serve --prt 1
says "wrong option" "$err" "did you mean --port?"
exits 2 serve word

run serve --model /nonexistent
case $err in
*"built without libmicrohttpd"*)
    ok "says what is missing"
    skip "the server" "mha was built without libmicrohttpd"
    finish
    exit
    ;;
esac
says "no model" "$err" "/nonexistent: cannot be opened"
if ! command -v python3 >/dev/null; then
    skip "the server" "no python3"
    finish
    exit
fi
train_dull
export MHA_MODEL=$scratch/dull.safetensors

# start OPTION...: a server; $address is where, $server its process.
start() {
    : >address
    "$mha" serve "$@" >address 2>log &
    server=$!
    await address $server
    address=$(cat address)
}

# stop SIGNAL: $code is what the server ends with.
stop() {
    kill -s "$1" "$server"
    wait "$server" 2>/dev/null
    code=$?
    server=
}

# client NAME SCRIPT [ARGUMENT...]: runs Python against the server; what it prints is wrong.
client() {
    local title=$1 script=$2 wrong
    shift 2
    wrong=$(python3 -c '
import http.client, json, socket, sys, threading, time
from urllib.parse import urlsplit
address = urlsplit(sys.argv[1])
port, root = address.port, address.path
def ask(path, body=None, method=None, headers={}):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    line.request(method or ("GET" if body is None else "POST"), path, body, headers)
    answer = line.getresponse()
    data = answer.read()
    line.close()
    return answer.status, data
def view(request):
    body = request if isinstance(request, bytes) else json.dumps(request)
    status, data = ask(root + "api/view", body)
    return status, json.loads(data)
def wanted(what, got, expected):
    if got != expected: print(what, "got", got, "expected", expected)
def data_of(page):
    begin = "<script id=\"data\" type=\"application/json\">"
    at = page.index(begin) + len(begin)
    return json.loads(page[at:page.index("</script>", at)])
'"$script" "$address" "$@" 2>&1)
    if [ -z "$wrong" ]; then ok "$title"; else bad "$title" "$(tail -n 5 <<<"$wrong")"; fi
}

start
case $address in
http://127.0.0.1:[1-9]*/????????????????????????????????/) ok "an address" ;;
*) bad "an address" "got: $address" "$(cat log)" ;;
esac
port=${address#http://127.0.0.1:}
port=${port%%/*}

# The kernel's own table, in hexadecimal, little-endian.
listening=$(awk -v port="$(printf '%04X' "$port")" \
    '$4 == "0A" && $2 ~ ":" port "$" { print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
if [ "$listening" = "0100007F:$(printf '%04X' "$port")" ]; then
    ok "listens on 127.0.0.1 only"
else
    bad "listens on 127.0.0.1 only" "got: $listening"
fi

# After the address is printed it gives up what it does not need, in all of its threads.
restricted() {
    ! grep -L '^Seccomp:[[:space:]]*2' /proc/"$server"/task/*/status 2>/dev/null | grep -q .
}
if [[ $(uname -m) =~ ^(x86_64|aarch64)$ ]] && grep -q '^Seccomp:' /proc/self/status; then
    for _ in {1..100}; do
        restricted && break
        sleep 0.1
    done
    if restricted; then ok "gives up what it does not need"; else bad "gives up what it does not need"; fi
else
    skip "what it gives up" "no seccomp here"
fi

client "no token, no answer" '
for path in ("/", "/api/view", root[:-1], root[:-2] + "/", "/" + "0" * 32 + "/", root[:-2] + "x/",
             "/" + "0" * 32 + "/api/view", "//" + root, "/?" + root, "/" + "x" * 5000):
    status, data = ask(path)
    wanted(path[:60], status, 403)
    if b"script" in data: print(path, "tells too much")
wanted("a body", ask("/" + "0" * 32 + "/api/view", b"{}")[0], 403)
wanted("another host", ask(root, headers={"Host": "example.com:%d" % port})[0], 403)
wanted("by name", ask(root, headers={"Host": "localhost:%d" % port})[0], 200)
own = "Host: 127.0.0.1:%d\r\n" % port
for hosts, expected in (own, 200), (own + own, 400), (own + "hOST: example.com\r\n", 400), ("", 403):
    line = socket.create_connection(("127.0.0.1", port), timeout=600)
    line.sendall(("GET %s HTTP/1.1\r\n%s\r\n" % (root, hosts)).encode())
    wanted(hosts, int(line.recv(12).split()[1]), expected)
    line.close()
'
client "what there is" '
wanted("the page", ask(root)[0], 200)
wanted("elsewhere", ask(root + "x")[0], 404)
wanted("a parent", ask(root + "../" + root[1:])[0], 404)
wanted("GET of the data", ask(root + "api/view")[0], 405)
wanted("POST of the page", ask(root, b"{}")[0], 405)
wanted("DELETE", ask(root, method="DELETE")[0], 405)
wanted("HEAD", ask(root, method="HEAD"), (200, b""))
wanted("HEAD of the data", ask(root + "api/view", method="HEAD"), (405, b""))
def header(method, path, name):
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    line.request(method, path)
    return line.getresponse().getheader(name)
wanted("length", header("HEAD", root, "Content-Length"), header("GET", root, "Content-Length"))
wanted("what is allowed", header("DELETE", root, "Allow"), "GET, HEAD")
wanted("what is allowed", header("GET", root + "api/view", "Allow"), "POST")
line = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
line.request("GET", root)
answer = line.getresponse()
page = answer.read().decode()
for name, value in (("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer"),
                    ("X-Content-Type-Options", "nosniff")):
    wanted(name, answer.getheader(name), value)
if "<html data-live" not in page or "connect-src \u0027self\u0027" not in page: print("is not live")
'

# page FOLDER ARGUMENT...: view.html there.
page() {
    mkdir "$1" && (cd "$1" && "$mha" view "${@:2}" >/dev/null 2>&1)
}
page text "the cat sleeps"
page to --to "le chien dort" "the cat sleeps"
page first "the cat that i saw yesterday ran away"
client "the data of mha view" '
def whole(path): return data_of(open(path, encoding="utf-8").read())
def file(path):
    data = whole(path)
    del data["matrices"]
    for sentence in data["sentences"]: del sentence["steps"]
    return data
def same(what, got, other):
    if got != other: print(what, "differs")
same("a text", view({"text": "the cat sleeps"})[1], file("text/view.html"))
same("no changes", view({"changes": [], "text": "the cat sleeps"})[1], file("text/view.html"))
same("a target", view({"text": "the cat sleeps", "to": "le chien dort"})[1], file("to/view.html"))
same("the page", data_of(ask(root)[1].decode()), file("first/view.html"))
# What a page from disk has of one layer is what is asked for.
data = whole("text/view.html")
for n, kind in enumerate(("encoder", "decoder", "cross")):
    status, got = view({"text": "the cat sleeps", "compute": {"kind": kind, "layer": 1}})
    same("steps of " + kind, got["steps"], data["sentences"][0]["steps"][n:n + 1])
    for name, matrix in data["matrices"][n].items(): same(name, got["matrices"][0][name], matrix)
'
client "changed heads" '
import base64, struct
def floats(text):
    data = base64.b64decode(text)
    return struct.unpack("<%df" % (len(data) // 4), data)
def likely(sentence): return sum(sentence["log_likelihood"])
plain = view({"text": "the cat sleeps", "to": "le chat dort"})[1]["sentences"][0]
for k, kind in enumerate(plain["kinds"]):
    for change, name in ("zero", "losses"), ("uniform", "uniform_losses"):
        for m, loss in enumerate(floats(kind[name])):
            status, data = view({"text": "the cat sleeps", "to": "le chat dort", "changes": [
                {"kind": kind["name"], "layer": m // 2 + 1, "head": m % 2 + 1, "change": change}]})
            got = likely(plain) - likely(data["sentences"][0])
            if abs(got - loss) > 1e-4: print(kind["name"], m, change, got, "not", loss)
            own = data["sentences"][0]["kinds"][k]
            rows, columns = own["rows"], own["columns"]
            w = floats(own["weights"][m])
            for i in range(rows):
                seen = i + 1 if kind["name"] == "decoder" else columns
                if change == "uniform" and any(abs(x - 1 / seen) > 1e-6 for x in w[i * columns:i * columns + seen]):
                    print(kind["name"], m, "is not uniform")
            again = floats(own["losses" if change == "zero" else "uniform_losses"])[m]
            if abs(again) > 1e-6: print("a changed head changes again", again)
'
# What a changed model says, it says again when it reads it.
client "a translation with changed heads" '
every = [{"kind": "cross", "layer": 1 + n // 2, "head": 1 + n % 2, "change": "zero"} for n in range(4)]
sentence = view({"text": "our aunt will be lazy", "changes": every})[1]["sentences"][0]
said = sentence["said"]
wanted("words", said[:len(sentence["expected"]) - 1], sentence["expected"][:-1])
'
client "invalid requests" '
for body in (b"", b"{", b"[]", b"null", b"{\"text\": 1}", b"{\"text\": \"a\", \"text\": \"b\"}", b"\xff",
             b"{\"text\": \"a\\u0000b\"}", b"{}", b"{\"text\": \"\"}", b"{\"txt\": \"a\"}", b"[" * 5000,
             b"{\"text\": \"cat\"} x", json.dumps({"text": "cat " * 100}).encode(),
             json.dumps({"text": "cat", "to": "chat " * 100}).encode(),
             json.dumps({"text": "cat", "changes": {}}).encode(),
             json.dumps({"text": "cat", "changes": [1]}).encode(),
             json.dumps({"text": "cat", "changes": [{}]}).encode()):
    status, data = view(body)
    if status != 400 or not data["error"]: print(body[:40], status, data)
good = {"kind": "cross", "layer": 1, "head": 1, "change": "zero"}
wanted("good", view({"text": "cat", "changes": [good]})[0], 200)
for key, value in (("kind", "crss"), ("layer", 0), ("layer", 3), ("layer", 1e30), ("layer", -1),
                   ("layer", 4294967297), ("head", 3), ("change", "mean"), ("change", 0), ("x", 1)):
    status, data = view({"text": "cat", "changes": [{**good, key: value}]})
    if status != 400 or not data["error"]: print(key, value, status, data)
'
client "a hostile text" '
status, data = view({"text": "</script><script>alert(1)</script>"})
wanted("status", status, 200)
'
client "a huge body" '
def raw(head, body=b""):
    line = socket.create_connection(("127.0.0.1", port), timeout=600)
    line.sendall(head.replace("HOST", "Host: 127.0.0.1:%d" % port).encode() + body)
    return line
wanted("16 KB", ask(root + "api/view", b" " * 16384)[0], 400)
wanted("more", ask(root + "api/view", b" " * 16385)[0], 413)
for length in "1000000000000", "99999999999999999999999":
    line = raw("POST %sapi/view HTTP/1.1\r\nHOST\r\nContent-Length: %s\r\n\r\n" % (root, length))
    answer = line.recv(100)
    if b" 413 " not in answer and b" 400 " not in answer: print(length, answer)
line = raw("POST %sapi/view HTTP/1.1\r\nHOST\r\nTransfer-Encoding: chunked\r\n\r\n" % root)
try:
    for n in range(10000): line.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
    print("40 MB in chunks were taken")
except OSError:
    pass
line = raw("GET %s HTTP/1.1\r\nHOST\r\n" % root)
try:
    for n in range(1000): line.sendall(b"X-%d: " % n + b"x" * 1000 + b"\r\n")
    line.sendall(b"\r\n")
    if b" 200 " in line.recv(100): print("1 MB of headers was taken")
except OSError:
    pass
wanted("then", ask(root)[0], 200)
'
# A client a byte at a time loses its connection; the others do not wait for it.
client "slow clients" '
began = time.time()
lines = [socket.create_connection(("127.0.0.1", port), timeout=600) for n in range(31)]
head = ("POST %sapi/view HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 16000\r\n\r\n" % (root, port)).encode()
for n, line in enumerate(lines):
    line.sendall(head if n % 2 else head[:20])
wanted("others", ask(root)[0], 200)
alive = set(lines)
for n in range(1200):
    if not alive: break
    for line in list(alive):
        try: line.sendall(b" ")
        except OSError: alive.discard(line)
    time.sleep(0.5)
if alive: print(len(alive), "lines are still open after", time.time() - began)
if time.time() - began < 8: print("no time at all", time.time() - began)
wanted("then", ask(root)[0], 200)
'
# However many they are, others need not wait until they have lost their connections. With more than
# there is room for, the oldest of them lose theirs.
client "a crowd of slow clients" '
def is_open(line):
    line.setblocking(False) # with a time limit recv() would wait for the end
    try: return line.recv(1) != b""
    except BlockingIOError: return True
    except OSError: return False
head = ("POST %sapi/view HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 16000\r\n\r\n" % (root, port)).encode()
def left_of(count):
    lines = [socket.create_connection(("127.0.0.1", port), timeout=600) for n in range(count)]
    for n, line in enumerate(lines):
        try: line.sendall(head if n % 2 else b"GET ")
        except OSError: pass
    wanted("then", ask(root)[0], 200)
    left = sum(map(is_open, lines))
    for line in lines: line.close()
    return left
for count in 200, 600: # several times, since a busy machine may need their ten seconds to open them
    if not any(left_of(count) >= 100 for attempt in range(20)):
        print("of", count, "lines less than 100 were open when another was answered")
'
client "many clients at once" '
truth = {n: view({"text": "the cat " * (n % 4 + 1)})[1] for n in range(4)}
wrong = []
def one(n):
    try:
        for k in range(3):
            if view({"text": "the cat " * (n % 4 + 1)}) != (200, truth[n % 4]): wrong.append(n)
    except Exception as problem:
        wrong.append((n, problem))
threads = [threading.Thread(target=one, args=(n,)) for n in range(60)]
for t in threads: t.start()
for t in threads: t.join()
if wrong: print(len(wrong), wrong[:3])
'
client "clients that go away" '
for n in range(100):
    line = socket.create_connection(("127.0.0.1", port), timeout=600)
    line.sendall(("GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (root, port)).encode()[:20 + 3 * n])
    line.close()
wanted("then", ask(root)[0], 200)
'

before=$address
exits 1 serve --port "$port"
says "a port that is taken" "$err" "cannot listen on port $port"
stop INT
if [ "$code" -eq 0 ]; then ok "Ctrl-C ends it"; else bad "Ctrl-C ends it" "exits with $code"; fi
start --port "$port" --threads 1
case $address in
"$before") bad "another token" ;;
"http://127.0.0.1:$port/"*) ok "the same port again, another token" ;;
*) bad "the same port again" "$(cat log)" ;;
esac
client "the old address is no good" '
wanted("old", ask(urlsplit(sys.argv[2]).path)[0], 403)
wanted("new", ask(root)[0], 200)
' "$before"
stop KILL
start --port "$port"
client "after it was killed" 'wanted("status", ask(root)[0], 200)'
# Ends in the middle of clients that wait.
python3 -c '
import socket, sys, time
lines = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for n in range(40)]
print("yes", file=open("waiting", "w"), flush=True)
time.sleep(3600)' "$port" &
idle=$!
await waiting $idle
stop TERM
kill "$idle"
wait "$idle" 2>/dev/null
if [ "$code" -eq 0 ]; then ok "ends with lines open"; else bad "ends with lines open" "exits with $code"; fi

finish
