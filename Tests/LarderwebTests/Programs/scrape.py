"""Runs prometheus on a directory's prometheus.yml until it has scraped the named metrics, and prints their values."""
import json, os, subprocess, sys, time, urllib.parse, urllib.request, socket

program, directory, names = sys.argv[1], sys.argv[2], sys.argv[3:]
free = socket.socket()
free.bind(("127.0.0.1", 0))
port = free.getsockname()[1]
free.close()
log = open(directory + "/prometheus.log", "w")
server = subprocess.Popen(
    [program, "--config.file=" + directory + "/prometheus.yml", "--storage.tsdb.path=" + directory + "/data",
     f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"], stdout=log, stderr=log)
try:
    until = time.monotonic() + 60
    values = {}
    while len(values) < len(names) and time.monotonic() < until and server.poll() is None:
        for name in names:
            try:
                url = f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(name)
                result = json.load(urllib.request.urlopen(url, timeout=5))["data"]["result"]
            except OSError:
                result = []
            if result:
                values[name] = result[0]["value"][1]
        time.sleep(0.05)
    for name in names:
        print(name, values.get(name, "was not scraped"))
    if len(values) < len(names):
        log.flush()
        sys.exit(open(log.name).read()[-2000:])
finally:
    server.kill()
    server.wait()
