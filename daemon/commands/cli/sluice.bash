# SPDX-License-Identifier: Apache-2.0
# Completion of `sluice` for bash. Verbs and options come from its own --help, so that they cannot
# differ from what it knows; jobs come from `sluice --json jobs`.

# The words of the first column of a --help, below a heading. Options are options below any.
_sluice_column() { # HEADING COMMAND...
  local heading=$1
  shift
  "$@" --help 2>/dev/null | awk -v heading="$heading:" '
    /^[A-Z]/ { inside = $0 == heading; next }
    (inside && /^  [^ ]/) || (heading == "Options:" && /^  -/) {
      n = split($1, words, ","); for (i = 1; i <= n; ++i) print words[i]
    }'
}

_sluice_jobs() {
  "$@" --json jobs 2>/dev/null | sed -n 's/^ *"job": "\([^"]*\)",*$/\1/p'
}

# Programs: not the keywords, builtins, functions and aliases of this shell, which nobody can run.
_sluice_programs() { # WORD
  local name
  compgen -c -- "$1" | sort -u | while IFS= read -r name; do
    [ -z "$(type -P -- "$name")" ] || printf '%s\n' "$name"
  done
  compgen -f -- "$1"
}

_sluice() {
  local word=${COMP_WORDS[COMP_CWORD]} verb='' second='' i at=$COMP_CWORD
  local command=("${COMP_WORDS[0]}")
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i]} in
      --) break ;;
      --run-dir) command+=("${COMP_WORDS[@]:i:2}") && ((++i)) ;;
      --limit | --order | --order-journal | --class | --job | --report | --record | --interval | --paths-depth | --policy | --for | --sort | --filter) ((++i)) ;;
      -n | -i | -o | --target | --arrivals | --budget | --size | --only | --processes | --html) ((++i)) ;;
      -*) ;;
      *) [ -z "$verb" ] && verb=${COMP_WORDS[i]} || second=${second:-${COMP_WORDS[i]}} ;;
    esac
  done
  if [ "$verb" = run ] && { [ -n "$second" ] || ((i < at)); }; then
    if [ -z "$second" ] && ((at == i + 1)); then  # right after the --
      COMPREPLY=($(_sluice_programs "$word"))
    else
      COMPREPLY=($(compgen -f -- "$word"))
    fi
    return
  fi
  local sub=()
  case $verb in policy | trace | hook | cost) sub=(${second:+"$second"}) ;; esac
  case $word in
    -*)
      COMPREPLY=($(compgen -W "$(_sluice_column Options "${command[0]}" $verb "${sub[@]}")
        $(_sluice_column Options "${command[0]}")" -- "$word"))
      return
      ;;
  esac
  case ${COMP_WORDS[COMP_CWORD - 1]}/$verb/$second in
    --sort/*) COMPREPLY=($(compgen -W 'waiting served grant demand escaped job user class' \
      -- "$word")) ;;
    --job/*) COMPREPLY=($(compgen -W "$(_sluice_jobs "${command[@]}")" -- "$word")) ;;
    --arrivals/*) COMPREPLY=($(compgen -W 'even poisson' -- "$word")) ;;
    */run/) COMPREPLY=($(_sluice_programs "$word")) ;;
    */policy/ | */trace/ | */hook/ | */cost/)
      COMPREPLY=($(compgen -W "$(_sluice_column Subcommands "${command[0]}" "$verb")" \
        -- "$word")) ;;
    --from/trace/*)
      COMPREPLY=($(compgen -W "$(_sluice_column 'Formats (--from), else found from the content' \
        "${command[0]}" trace convert)" -- "$word")) ;;
    --jobs-by/trace/*) COMPREPLY=($(compgen -W 'file job mdt pid tid node' -- "$word")) ;;
    */trace/generate)
      COMPREPLY=($(compgen -W "$(_sluice_column Presets "${command[0]}" trace generate |
        tr -d :)" -- "$word")) ;;
    */stat/ | */order/ | */set/ | */pause/ | */resume/)
      COMPREPLY=($(compgen -W "$(_sluice_jobs "${command[@]}")" -- "$word")) ;;
    *// | */help/) COMPREPLY=($(compgen -W "$(_sluice_column Subcommands "${command[0]}")" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -- "$word")) ;;
  esac
}

complete -F _sluice sluice
