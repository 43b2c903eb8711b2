"""One parser turns raw text into typed rows or dead letters, the same locally and on Spark.

Every event becomes a typed row or a dead letter that says why not; nothing is rounded, cut or
dropped. So events in = rows + dead letters + blank lines, exactly. Text (`json_lines`,
`csv_records`) and tables (`tables`) give columns of raw values, `conversion` holds the rules by
which a raw value becomes a value of its attribute's type, and `assembly` makes batches of the
columns. Three shorter paths have the same result: plain lines of JSON (`json_columns`) and of CSV
(`csv_columns`), Arrow tables that are read where they lie (`typed_tables`), and single dicts
(`dict_reader`). A file is read at once or in pieces (`files`, `file_pieces`).
"""

from headgate.events.batch import DeadLetter, EventBatch
from headgate.events.csv_records import CsvRecord, parse_csv_records, split_csv
from headgate.events.file_pieces import LineIndex, Piece, split_file
from headgate.events.files import read_event_at, read_events, read_piece
from headgate.events.inference import Inferred, infer_stream
from headgate.events.json_lines import parse_json_lines
from headgate.events.tables import batch_from_rows

__all__ = [
    "CsvRecord",
    "DeadLetter",
    "EventBatch",
    "Inferred",
    "LineIndex",
    "Piece",
    "batch_from_rows",
    "infer_stream",
    "parse_csv_records",
    "parse_json_lines",
    "read_event_at",
    "read_events",
    "read_piece",
    "split_csv",
    "split_file",
]
