"""docs/reliability.md tells the faults that the table's test strikes, and how each went."""

from tests.faults import page
from tests.faults.bench import STORAGES
from tests.faults.strikes import FAULTS
from tests.faults.test_table import FAILED


def test_the_page_has_the_rows_of_the_test() -> None:
    assert [row[0] for row in page.written()] == page.rows()


def test_every_pair_was_struck_and_went_as_it_must() -> None:
    for name, *texts in page.written():
        assert len(texts) == len(STORAGES), name
        assert not {FAILED, page.NOT_RUN, ""} & {*texts}, name


def test_a_pair_that_makes_no_sense_is_a_dash() -> None:
    struck = {fault.name: fault.storages for fault in FAULTS}
    for name, *texts in page.written():
        dashes = tuple(s for s, text in zip(STORAGES, texts, strict=True) if text != "-")
        assert dashes == struck.get(name, STORAGES), name
