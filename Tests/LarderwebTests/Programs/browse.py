"""Opens pages in headless Chromium and prints what it saw as JSON.

usage: browse.py CHROMIUM PROFILE-DIRECTORY < steps

Steps are a JSON list of objects, run in order in one page:
  {"open": URL, "width": W, "height": H, "dark": bool}   opens a page and waits until it is loaded
  {"run": EXPRESSION}                                    evaluates an expression, awaits a promise, reports the value
  {"shoot": PATH}                                        stores a PNG of the page
  {"key": NAME}                                          presses a key
Output: {"values": […], "problems": […], "requests": […]}. Problems are warnings and errors of the console, exceptions,
violations of the page's content security policy, and failed requests.
"""
import base64, json, os, subprocess, sys

program, profile = sys.argv[1:]
steps = json.load(sys.stdin)
# The DevTools protocol on two pipes: JSON objects, each followed by a NUL.
to_browser, from_us = os.pipe()
to_us, from_browser = os.pipe()


def place_pipes():
    os.dup2(to_browser, 3)
    os.dup2(from_browser, 4)


def launch():
    # Chromium uses the descriptors 3 and 4, so the pipes must not.
    high = [os.dup(end) if end < 5 else end for end in (to_browser, from_browser)]
    globals()["to_browser"], globals()["from_browser"] = high
    return subprocess.Popen(
        [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
         "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-extensions",
         "--force-color-profile=srgb", "--hide-scrollbars", "--user-data-dir=" + profile, "about:blank"],
        preexec_fn=place_pipes, pass_fds=(3, 4), stdout=subprocess.DEVNULL,
        stderr=open(profile + ".log", "wb"))


browser = launch()
os.close(to_browser)
os.close(from_browser)
number, buffer, replies = 0, b"", {}
values, problems, requests, loaded = [], [], [], set()


def read():
    global buffer
    while b"\0" not in buffer:
        piece = os.read(to_us, 1 << 20)
        if not piece:
            sys.exit("chromium has ended: " + open(profile + ".log", errors="replace").read()[-2000:])
        buffer += piece
    message, buffer = buffer.split(b"\0", 1)
    message = json.loads(message)
    if "id" in message:
        replies[message["id"]] = message
    else:
        note(message["method"], message.get("params", {}))


def note(method, params):
    if method == "Runtime.consoleAPICalled" and params["type"] in ("warning", "error", "assert"):
        problems.append("console: " + json.dumps(params["args"])[:500])
    elif method == "Runtime.exceptionThrown":
        problems.append("exception: " + json.dumps(params["exceptionDetails"])[:800])
    elif method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
        problems.append("log: " + params["entry"]["text"] + " " + params["entry"].get("url", ""))
    elif method == "Page.lifecycleEvent" and params["name"] == "load":
        loaded.add(params["loaderId"])
    elif method == "Network.requestWillBeSent":
        requests.append(params["request"]["url"])


def call(method, session=None, **params):
    global number
    number += 1
    mine = number
    message = {"id": mine, "method": method, "params": params}
    if session:
        message["sessionId"] = session
    os.write(from_us, json.dumps(message).encode() + b"\0")
    while mine not in replies:
        read()
    reply = replies.pop(mine)
    # If the page navigates during the evaluation, evaluate again on the new page.
    if "error" in reply and "navigated" in reply["error"]["message"]:
        return None
    if "error" in reply:
        sys.exit(f"{method}: {reply['error']}")
    return reply["result"]


READY = """new Promise((done, failed) => {
  const look = () =>
    document.readyState === "complete" &&
    (document.body.dataset.ready === "yes" || !document.querySelector("script[type=module]"));
  if (look()) return done(true);
  setTimeout(() => failed(new Error("not ready: " + document.body?.innerText.slice(0, 300))), 30000);
  new MutationObserver(() => look() && done(true)).observe(document, { attributes: true, subtree: true, childList: true });
  addEventListener("load", () => look() && done(true));
})"""

try:
    target = call("Target.createTarget", url="about:blank")["targetId"]
    page = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Runtime", "Log", "Network", "Page"):
        call(domain + ".enable", page)
    call("Page.setLifecycleEventsEnabled", page, enabled=True)

    def run(expression):
        result = None
        while result is None:
            result = call("Runtime.evaluate", page, expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression[:200]}: {json.dumps(result['exceptionDetails'])[:1000]}")
        return result["result"].get("value")

    for step in steps:
        if "open" in step:
            call("Emulation.setDeviceMetricsOverride", page, width=step.get("width", 1200),
                 height=step.get("height", 900), deviceScaleFactor=1, mobile=False)
            call("Emulation.setEmulatedMedia", page,
                 features=[{"name": "prefers-color-scheme", "value": "dark" if step.get("dark") else "light"}])
            opened = call("Page.navigate", page, url=step["open"])
            if "errorText" in opened:
                sys.exit(f"{step['open']}: {opened['errorText']}")
            while opened["loaderId"] not in loaded:
                read()
            run(READY)
        if "run" in step:
            values.append(run(step["run"]))
        if "key" in step:
            for kind in ("keyDown", "keyUp"):
                text = {"text": step["key"]} if len(step["key"]) == 1 and kind == "keyDown" else {}
                call("Input.dispatchKeyEvent", page, type=kind, key=step["key"], **text)
        if "shoot" in step:
            data = call("Page.captureScreenshot", page, format="png")["data"]
            open(step["shoot"], "wb").write(base64.b64decode(data))
    print(json.dumps({"values": values, "problems": problems, "requests": requests}))
finally:
    browser.kill()
    browser.wait()
