"""The table of models: each is one row of one of the modules here."""

from models import attention, hugging_face, recurrent, vision

ROWS = [*vision.ROWS, *recurrent.ROWS, *attention.ROWS, *hugging_face.ROWS]
