/* The kinds of services: what they run. */
#include "control/service.h"

#include "base/macros.h"
#include "base/rng.h"

#include <stdio.h>
#include <string.h>

#define CREDENTIAL_BYTES 24
#define RUNS_MAX         100

/* ---- service: any program ---------------------------------------------------------------------- */

static weir_status make_any(struct control *control, const struct control_service *wanted,
                            json_t **out, char **out_credential, struct weir_error *err)
{
    (void)control;
    if (json_array_size(json_object_get(wanted->spec, "argv")) == 0) {
        return weir_error_set(err, WEIR_ERR_INVALID,
                              "$.spec.argv: the program and its arguments are needed: weir service "
                              "run NAME -- PROGRAM");
    }
    *out = json_deep_copy(wanted->spec);
    *out_credential = NULL;
    return WEIR_OK;
}

/* Sets argv, unless there is one, and adds to env, over what is there. */
static json_t *with_script(const json_t *spec, const char *script, json_t *env)
{
    json_t *made = spec != NULL ? json_deep_copy(spec) : json_object();
    if (json_array_size(json_object_get(made, "argv")) == 0) {
        json_object_set_new(made, "argv", json_pack("[s,s,s]", "/bin/sh", "-c", script));
    }
    if (!json_is_object(json_object_get(made, "env"))) {
        json_object_set_new(made, "env", json_object());
    }
    json_object_update(json_object_get(made, "env"), env);
    json_decref(env);
    return made;
}

/* ---- notebook: Jupyter, Debian's or whatever the node's PATH has ------------------------------------ */

/* Its folder is where it works and keeps its settings. Whoever comes has been asked who they are by
 * Weir; the token keeps others on the node out, and no person ever sees it. */
static const char notebook_script[] =
    "set -eu\n"
    "mkdir -p \"$WEIR_FOLDER/.jupyter\"\n"
    "cd \"$WEIR_FOLDER\"\n"
    "export HOME=\"$WEIR_FOLDER\" JUPYTER_CONFIG_DIR=\"$WEIR_FOLDER/.jupyter\" "
    "JUPYTER_DATA_DIR=\"$WEIR_FOLDER/.jupyter/data\" "
    "JUPYTER_RUNTIME_DIR=\"${TMPDIR:-/tmp}/jupyter-runtime\" IPYTHONDIR=\"$WEIR_FOLDER/.ipython\" "
    "MPLCONFIGDIR=\"${TMPDIR:-/tmp}/matplotlib\"\n"
    "root=; [ \"$(id -u)\" != 0 ] || root=--allow-root\n"
    "common=\"--no-browser --ip=127.0.0.1 --port=$WEIR_PORT $root\"\n"
    "if command -v jupyter-lab >/dev/null; then\n"
    "  exec jupyter-lab $common --ServerApp.base_url=\"$WEIR_SERVICE_PATH\" "
    "--ServerApp.port_retries=0 --ServerApp.allow_remote_access=True "
    "--ServerApp.root_dir=\"$WEIR_FOLDER\"\n"
    "elif command -v jupyter-notebook >/dev/null; then\n"
    "  exec jupyter-notebook $common --NotebookApp.base_url=\"$WEIR_SERVICE_PATH\" "
    "--NotebookApp.port_retries=0 --NotebookApp.allow_remote_access=True "
    "--NotebookApp.notebook_dir=\"$WEIR_FOLDER\"\n"
    "fi\n"
    "echo 'this node has no Jupyter: install it there (apt-get install jupyter-notebook), or give "
    "the notebook an environment that has it (weir notebook start --python)' >&2\n"
    "exit 69\n";

static char *random_text(struct weir_arena *arena)
{
    unsigned char bytes[CREDENTIAL_BYTES];
    char *text = weir_arena_alloc(arena, 2 * sizeof bytes + 1);
    weir_random_bytes(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        (void)snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return text;
}

static weir_status make_notebook(struct control *control, const struct control_service *wanted,
                                 json_t **out, char **out_credential, struct weir_error *err)
{
    (void)err;
    char *token = random_text(control->arena);
    *out = with_script(wanted->spec, notebook_script, json_pack("{s:s}", "JUPYTER_TOKEN", token));
    *out_credential = weir_arena_printf(control->arena, "token %s", token);
    return WEIR_OK;
}

/* ---- tensorboard: the measurements of runs, as TensorBoard shows them --------------------------------- */

/* Writes what the server knows of the runs, and what comes, as event files, with TensorBoard's own
 * library; TensorBoard reads those. */
static const char tensorboard_script[] =
    "set -eu\n"
    "cd \"$WEIR_FOLDER\"\n"
    "python=\"${WEIR_PYTHON:-python3}\"\n"
    "\"$python\" -c 'import tensorboard' 2>/dev/null || {\n"
    "  echo 'this node has no TensorBoard: give it an environment that has it (weir tensorboard "
    "--python), or install the Python package tensorboard' >&2; exit 69; }\n"
    "export HOME=\"$WEIR_FOLDER\"\n"
    "rm -rf \"$WEIR_FOLDER/logs\"\n"
    "\"$python\" \"$OLDPWD/weir_events.py\" \"$OLDPWD/token\" \"$WEIR_FOLDER/logs\" &\n"
    "exec \"$python\" -m tensorboard.main --logdir \"$WEIR_FOLDER/logs\" --host 127.0.0.1 "
    "--port \"$WEIR_PORT\" --path_prefix \"${WEIR_SERVICE_PATH%/}\" --reload_interval 5 "
    "--load_fast=false\n";

static const char events_program[] =
    "import json, os, re, ssl, sys, time, urllib.parse, urllib.request\n"
    "from datetime import datetime\n"
    "from tensorboard.compat.proto.event_pb2 import Event\n"
    "from tensorboard.compat.proto.summary_pb2 import Summary\n"
    "from tensorboard.summary.writer.event_file_writer import EventFileWriter\n"
    "token_file, logs = sys.argv[1:]\n"
    "server, runs = os.environ['WEIR_SERVER'], os.environ['WEIR_RUNS'].split()\n"
    "ca = os.environ.get('WEIR_CA_FILE')\n"
    "context = ssl.create_default_context(cafile=ca) if server.startswith('https') else None\n"
    "writers, last = {}, {}\n"
    "def get(path):\n"
    "    token = open(token_file).read().strip()\n"
    "    request = urllib.request.Request(server + path, headers={'Authorization': 'Bearer ' + "
    "token})\n"
    "    return json.load(urllib.request.urlopen(request, timeout=30, context=context))\n"
    "def writer(run, name):\n"
    "    folder = os.path.join(logs, re.sub('[^A-Za-z0-9_-]', '_', name or 'run') + '-' + "
    "run[-8:])\n"
    "    if run not in writers:\n"
    "        writers[run] = EventFileWriter(folder, filename_suffix='.weir')\n"
    "    return writers[run]\n"
    "def follow_key(run, name, key):\n"
    "    while True:\n"
    "        query = {'key': key}\n"
    "        if (run, key) in last:\n"
    "            query['after_step'] = last[run, key]\n"
    "        points = get('/api/v1/runs/%s/metrics?%s' % (run, "
    "urllib.parse.urlencode(query)))['items']\n"
    "        for point in points:\n"
    "            last[run, key] = max(point['step'], last.get((run, key), point['step']))\n"
    "            when = datetime.fromisoformat(point['time_ms'].replace('Z', "
    "'+00:00')).timestamp()\n"
    "            if point['value'] is not None:\n"
    "                value = Summary.Value(tag=key, simple_value=point['value'])\n"
    "                writer(run, name).add_event(Event(wall_time=when, step=point['step'],\n"
    "                                                  summary=Summary(value=[value])))\n"
    "        if not points:\n"
    "            return\n"
    "def follow(run):\n"
    "    about = get('/api/v1/runs/' + run)\n"
    "    for key in sorted(about.get('metrics') or {}):\n"
    "        follow_key(run, about.get('name'), key)\n"
    "    if run in writers:\n"
    "        writers[run].flush()\n"
    "while True:\n"
    "    for run in runs:\n"
    "        try:\n"
    "            follow(run)\n"
    "        except Exception as error:\n"
    "            print('run %s cannot be read: %s' % (run, error), file=sys.stderr, flush=True)\n"
    "    time.sleep(5)\n";

static weir_status make_tensorboard(struct control *control, const struct control_service *wanted,
                                    json_t **out, char **out_credential, struct weir_error *err)
{
    size_t n = json_array_size(wanted->runs);
    char *list = "";
    if (n == 0 || n > RUNS_MAX) {
        return weir_error_set(err, WEIR_ERR_INVALID, "$.runs: expected 1 to %d runs", RUNS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        const char *run = json_string_value(json_array_get(wanted->runs, i));
        if (run == NULL || strpbrk(run, " /?#%\n") != NULL) {
            return weir_error_set(err, WEIR_ERR_INVALID, "$.runs[%zu]: expected a run", i);
        }
        list = weir_arena_printf(control->arena, "%s%s%s", list, i > 0 ? " " : "", run);
    }
    *out = with_script(wanted->spec, tensorboard_script, json_pack("{s:s}", "WEIR_RUNS", list));
    if (!json_is_object(json_object_get(*out, "files"))) {
        json_object_set_new(*out, "files", json_object());
    }
    json_object_set_new(json_object_get(*out, "files"), "weir_events.py",
                        json_string(events_program));
    *out_credential = NULL;
    return WEIR_OK;
}

const struct control_service_kind control_service_kinds[] = {
    {"service", "Any program that serves HTTP or WebSockets", false, make_any},
    {"notebook", "Jupyter, in a folder that stays", true, make_notebook},
    {"tensorboard", "TensorBoard, of the measurements of runs", true, make_tensorboard},
};
const size_t control_n_service_kinds = WEIR_ARRAY_LEN(control_service_kinds);
