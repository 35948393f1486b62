"""What a hostile job asks the server for with tokens that are not its own: started by stolen_test.py as a task, with
TARGETS (JSON): {"requests": [[method, path, body]], "thefts": {name: {"token"} or {"cookie"}, with "skip": indices}}.
One line of JSON per theft: {"theft", "answers": [status or null for what was skipped]}."""
import http.client
import json
import os
import urllib.parse

SERVER = urllib.parse.urlparse(os.environ["WEIR_SERVER"])


def ask(connection, theft, method, path, body):
    headers = {"Content-Type": "application/json"}
    if "token" in theft:
        headers["Authorization"] = "Bearer " + theft["token"]
    if "cookie" in theft:
        headers["Cookie"] = "weir_session=" + theft["cookie"]
    if "csrf" in theft:
        headers["X-Weir-Csrf"] = theft["csrf"]
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    if answer.status == 200 and answer.headers.get("Content-Type", "").startswith("text/event-stream"):
        connection.close()  # it would go on for ever
    else:
        answer.read()
    return answer.status


def main():
    with open("targets.json") as file:
        targets = json.load(file)
    for name, theft in targets["thefts"].items():
        connection = http.client.HTTPConnection(SERVER.hostname, SERVER.port, timeout=30)
        answers = [None if i in theft["skip"] else ask(connection, theft, *request)
                   for i, request in enumerate(targets["requests"])]
        print(json.dumps({"theft": name, "answers": answers}), flush=True)


main()
