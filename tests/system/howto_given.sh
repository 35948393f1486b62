# What the readers of how-to pages have before they begin, or have done meanwhile: sourced by the session (howto.py).

given() { python3 "$ROOT/tests/system/howto_given.py" "$@"; }

# dataset NAME FOLDER: a version of it; there may be one already, as there may be a project.
dataset() { weir dataset create "$1" || weir get dataset "$1" && weir dataset put "$1" "$2" && weir dataset freeze "$1"; }
project() { weir project create "$1" || weir get project "$1"; }

# soon COMMAND…: until it succeeds, some seconds at most.
soon() {
    local n=0
    until "$@"; do
        [ $((n += 1)) -le 200 ] || return 1
        sleep 0.1
    done
}

# building_security SED-EXPRESSION: the example's ION, of quick trainings that begin by hand alone.
building_security() {
    sed "s#@WORK@#$PWD#; s/steps: 700/steps: 10/; /schedule:/d; /new_data:/d; $1" "$ROOT/examples/building-security/ion.yaml" | weir apply -f -
}

# trained ION N: the training, its Nth, is begun, and its model is a candidate.
trained() {
    weir trigger "$1" training "${@:3}" && soon is_job "$1.training.$2" && weir wait "job/$1.training.$2" && soon is_candidate "$1" "$2"
}
is_job() { weir get jobs | grep -q " $1 "; }
is_candidate() { weir get candidates "$1" | grep -q "\.training  *$2 "; }

# An ION that classifies, of pipelines.yaml, with three versions, one in service; and a model with four.
reviewed() {
    given classes parts 16 bolt nut && given classes held-out 8 bolt nut && mkdir frames &&
        dataset parts parts && dataset held-out held-out &&
        cat >pipelines.yaml <<END &&
kind: ion
name: building-security
pipelines:
  - {name: training, type: training, dataset: parts, model: lenet, parameters: {epochs: 1, batch_size: 8}, triggers: {manual: true}}
  - {name: entrance, type: prediction, source: {kind: directory, path: "$PWD/frames"}}
END
        (cat pipelines.yaml && echo 'links: [{from: training, to: entrance, policy: manual}]') | weir apply -f - &&
        trained building-security 1 && weir approve building-security && trained building-security 2 && trained building-security 3 &&
        printf 'bolt\nnut\n' >labels.txt && printf 'width: 224\nheight: 224\n' >rule.yaml || return
    for seed in 1 2 3 4; do
        given classifier parts.onnx 2 $seed && weir model push parts parts.onnx --labels labels.txt --preprocess rule.yaml || return
    done
}

# A version of parts serves, and one that was measured beside it waits for people.
compared() {
    weir apply -f - <<'END' && soon weir approve parts-line && given classifier parts.onnx 2 5 &&
kind: ion
name: parts-line
pipelines: []
links: [{from: {model: parts}, to: {deployment: parts}, policy: [{kind: evaluate, dataset: held-out, margin: -1}, {kind: manual}]}]
END
        weir model push parts parts.onnx --labels labels.txt --preprocess rule.yaml && soon is_compared
}
is_compared() { weir get disagreements parts-line | grep -q png; }

# A door that has decided about one frame, by a model that was approved, of data of which somebody was forgotten since.
decided() {
    given people people ada georg eve && given people others dan fay gus && mkdir -p frames/north &&
        dataset faces people && dataset people people && dataset passers-by others &&
        building_security 's/always-update/manual/; 0,/dataset: faces/!s/dataset: faces/dataset: people/' &&
        trained building-security 1 && weir approve building-security --note "fewer false denials" &&
        weir person forget georg --yes --reason "asked for it" && cp people/ada/0.pgm frames/north/1.pgm && chmod -R a+rwX frames &&
        soon has_decided
}
has_decided() { weir get decisions | grep -q north; }

# An agent with eight devices, none of which is there.
devices() {
    printf 'devices: [{model: H100, count: 8, memory: 80GiB}]\n' >devices.yaml && mkdir ../agent &&
        weir token create a --role agent --user agent --node a -o json | grep -o 'weir_[^"]*' >../agent/token &&
        { weir agent --server "$(grep -o 'http[^"]*' "$WEIR_STATE/server.json")" --dir "$PWD/../agent" --devices devices.yaml --cpu-slots 8 \
            --node a >../agent.log 2>&1 & } && soon is_ready
}
is_ready() { weir get nodes | grep -q ready; }
