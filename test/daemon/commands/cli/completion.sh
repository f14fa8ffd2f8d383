#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completion for bash: every verb and option that --help knows, the jobs that run, then the words
# of the program that is started.
set -u
. test/lib/lib.sh
. daemon/commands/cli/sluice.bash
job=
trap 'kill $job 2>/dev/null; rm -rf "$SCRATCH"' EXIT
completes() { # WANTED WORDS...: the last word is the one to complete
  local want=$1
  shift
  COMP_WORDS=("$SLUICE" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _sluice
  case " ${COMPREPLY[*]} " in
    *" $want "*) ;;
    *) fail "$*: \"$want\" is not among: ${COMPREPLY[*]}" ;;
  esac
}
lacks() { # UNWANTED WORDS...
  local unwanted=$1
  shift
  COMP_WORDS=("$SLUICE" "$@")
  COMP_CWORD=$#
  COMPREPLY=()
  _sluice
  case " ${COMPREPLY[*]} " in
    *" $unwanted "*) fail "$*: \"$unwanted\" is offered" ;;
  esac
}
for verb in run jobs top stat set pause resume policy explain doctor keys submit hook; do
  completes $verb ''
done
completes resume re
completes trace help t
completes apply policy ''
completes --dry-run policy apply --
completes --run-dir policy apply --
completes --class run --
completes --sort top --
completes --rate-scale replay trace.csv --
completes poisson replay trace.csv --arrivals p
completes served top --sort s
completes --record run --
completes convert trace ''
completes --below trace convert --
completes strace trace convert --from s
completes abci-like trace generate ab
completes --dry-run submit --d
completes --class submit --
completes task-prolog hook t
completes --uid hook prolog --
completes --dry-run recover --
completes --budget calibrate --
completes check cost ''
completes --html cost show --
completes cat run -- ca
completes cat run ca
# Words of the shell are no programs, and a program's arguments are files.
for word in while case esac; do
  lacks $word run -- ${word%?}
  lacks $word run ${word%?}
done
lacks _sluice run -- _slu
lacks cat run -- ls ca
lacks cat run ls ca
completes cat run --limit open=5/s ca
touch "$SCRATCH/some-file"
completes "$SCRATCH/some-file" run -- cat "$SCRATCH/so"
completes "$SCRATCH/some-file" doctor "$SCRATCH/so"
"$SLUICE" --run-dir "$SCRATCH/run" run --no-daemon --job hydro -- sleep 100 &
job=$!
for _ in $(seq 100); do
  "$SLUICE" --run-dir "$SCRATCH/run" stat hydro >/dev/null 2>&1 && break
  sleep 0.05
done
completes hydro --run-dir "$SCRATCH/run" pause ''
completes hydro --run-dir "$SCRATCH/run" explain --job hy
