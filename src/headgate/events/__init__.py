"""One parser turns raw text into typed rows or dead letters, the same locally and on Spark.

Every event becomes a typed row or a dead letter that says why not; nothing is rounded, cut or
dropped. So events in = rows + dead letters + blank lines, exactly. Text (`json_lines`,
`csv_records`) and tables (`tables`) give columns of raw values, `convert` holds the rules by which
a raw value becomes a value of its attribute's type, and `assemble` makes batches of the columns.
"""

from headgate.events.batch import DeadLetter, EventBatch
from headgate.events.csv_records import CsvRecord, parse_csv_records, split_csv
from headgate.events.files import read_events
from headgate.events.infer import Inferred, infer_stream
from headgate.events.json_lines import parse_json_lines
from headgate.events.tables import from_rows

__all__ = [
    "CsvRecord",
    "DeadLetter",
    "EventBatch",
    "Inferred",
    "from_rows",
    "infer_stream",
    "parse_csv_records",
    "parse_json_lines",
    "read_events",
    "split_csv",
]
