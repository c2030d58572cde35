"""``ltc completion``: scripts that complete words in a shell, written from the table of commands."""

import shlex

BASH = """# Completion of the command ltc for bash: source <(ltc completion bash)
_ltc() {{
  local place= word current=${{COMP_WORDS[COMP_CWORD]}}
  local -a names options
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$place/$word" in {places}) place="$place/$word" ;; esac
  done
  case "$place" in
{cases}
  esac
  if [[ $current == -* ]]; then names=("${{options[@]}}"); fi
  COMPREPLY=($(compgen -W "${{names[*]}}" -- "$current"))
}}
complete -o default -F _ltc ltc
"""
ZSH = """#compdef ltc
# Completion of the command ltc for zsh: source <(ltc completion zsh), after compinit
_ltc() {{
  local place= word
  local -a names options
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case "$place/$word" in {places}) place="$place/$word" ;; esac
  done
  case "$place" in
{cases}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o option options
  elif (( $#names )); then
    _describe word names
  else
    _files
  fi
}}
if [[ $funcstack[1] == _ltc ]]; then _ltc "$@"; else compdef _ltc ltc; fi
"""


def _bash_word(word: str, about: str) -> str:
    return shlex.quote(word)


def _zsh_word(word: str, about: str) -> str:
    return shlex.quote(f"{word}:{about}" if about else word)


SHELLS = {"bash": (BASH, _bash_word), "zsh": (ZSH, _zsh_word)}


def _rows(row, place=""):
    yield place, row
    for command in row.commands:
        yield from _rows(command, f"{place}/{command.name}")


def script(shell: str, root) -> str:
    """The script for the shell; `root` is the table of ltc_cli."""
    template, word = SHELLS[shell]
    places, cases = [], []
    for place, row in _rows(root):
        places += [place] if place else []
        names, options = (" ".join(word(*item) for item in words.items()) for words in (row.choices(), row.options()))
        cases.append(f'    "{place}") names=({names}) options=({options}) ;;')
    return template.format(places="|".join(places), cases="\n".join(cases))
