# A commit of a repository into the task's folder, then the program: sh -c THIS weir ADDRESS COMMIT PROGRAM …
# It runs as the task, in its sandbox: what git reads and runs there is the task's own. GIT_TOKEN, if the job
# has such a secret, is the password for https.
address=$1 commit=$2
shift 2
fail() {
    echo "weir: $1" >&2
    exit 8
}
command -v git >/dev/null || fail "git is not here, which is to fetch $address: apt-get install git"
export GIT_TERMINAL_PROMPT=0
helper='!f() { echo "username=${GIT_USER:-x-access-token}"; echo "password=$GIT_TOKEN"; }; f'
run_git() {
    if [ -n "${GIT_TOKEN:-}" ]; then
        git -c advice.detachedHead=false -c "credential.helper=$helper" "$@"
    else
        git -c advice.detachedHead=false "$@"
    fi
}
git init -q . || fail "no repository can be made here"
# Servers that give no commit by its name alone, and short names, need the whole history.
run_git fetch -q --depth 1 -- "$address" "$commit" 2>/dev/null ||
    run_git fetch -q --tags -- "$address" '+refs/heads/*:refs/remotes/origin/*' ||
    fail "cannot fetch $address"
run_git checkout -q --detach "$commit" || fail "cannot check out $commit of $address"
if [ -f .gitmodules ]; then
    run_git submodule -q update --init --recursive || fail "cannot fetch the submodules of $address"
fi
exec "$@"
