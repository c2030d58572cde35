"""``python -m ltc``: the command ``ltc``."""

from ltc_cli import main

main()
