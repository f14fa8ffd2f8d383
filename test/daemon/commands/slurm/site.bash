# SPDX-License-Identifier: Apache-2.0
# For the tests on a Slurm cluster: `site OPTIONS…` starts the script again inside one, on its login
# node, as root; below it everything is there. Outside nothing is left.

. test/lib/lib.sh
sandbox=$top/scripts/sandbox-slurm

site() {
  [ -z "${SLUICE_SITE:-}" ] || return 0
  trap - EXIT
  "$sandbox" "$@" --keep-logs "$SCRATCH/logs" run bash "$0"
  local status=$?
  if [ $status != 0 ] && [ $status != 77 ]; then
    tail -n 15 "$SCRATCH"/logs/slurmd-n0.log "$SCRATCH"/logs/sluiced-n0.log 2>/dev/null
  fi
  rm -rf "$SCRATCH"
  exit $status
}

# as USER CMD…: with the user's own home as working directory.
as() {
  local user=$1
  shift
  (cd "/mnt/home/$user" && HOME=/mnt/home/$user USER=$user \
    setpriv --reuid "$user" --regid "$user" --init-groups "$@")
}

# batch USER OPTIONS… : standard input is the script; waits, prints the job's output.
batch() {
  local user=$1 id
  shift
  cat >"/mnt/home/$user/job.sh"
  id=$(as "$user" sbatch --parsable -o out.%j "$@" job.sh) || return 1
  wait_job "$id" || return 1
  cat "/mnt/home/$user/out.$id"
}

# answered CMD…: its status and output. Again where a step did not wait for a daemon that had no
# processor just then: it runs with what its job has, which is right, and not what is tested.
answered() {
  local try before out status
  for ((try = 0; try < 5; ++try)); do
    before=$(times_unanswered)
    out=$("$@")
    status=$?
    [ "$(times_unanswered)" = "$before" ] && break
  done
  printf '%s\n' "$out"
  return $status
}

times_unanswered() {
  cat "$SLUICE_SITE"/log/slurmd-*.log | grep -c 'sluiced has not answered'
}

wait_job() {
  until_true job_is_over "$1" || { echo "job $1 does not end" >&2; return 1; }
}

job_is_over() {
  case $(squeue -h -j "$1" -o %T 2>/dev/null) in
    '' | COMPLETED | FAILED | CANCELLED | TIMEOUT) return 0 ;;
  esac
  return 1
}

# has TEXT WORD WHAT
has() {
  case $1 in
    *"$2"*) ;;
    *) fail "$3: \"$2\" is not in: $1" ;;
  esac
}

lacks() {
  case $1 in
    *"$2"*) fail "$3: \"$2\" is in: $1" ;;
  esac
}

# Root on the login node asks the controller itself; users need not
# (test/daemon/commands/slurm/users.sh).
at_cluster() {
  sluice --run-dir /run/sluice-cluster "$@"
}

# jobs: ids of the jobs that the controller knows on some node, sorted, on one line.
sluice_jobs() {
  at_cluster --json jobs | python3 -c 'import json, sys
print(*sorted(int(j["job"]) for j in json.load(sys.stdin) if j["nodes"]))'
}

slurm_jobs() {
  squeue -h -t R,CG -o %A | sort -n | tr '\n' ' ' | sed 's/ $//'
}

same_jobs() {
  [ "$(sluice_jobs)" = "$(slurm_jobs)" ]
}
