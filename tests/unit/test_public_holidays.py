"""Public holidays by region: what a code may be, what is said of others, and what loading costs."""

import subprocess
import sys
from datetime import date

import pytest

from sexton.errors import InvalidSchedule
from sexton.inputs import are_same, own_inputs
from sexton.public_holidays import holiday_data_version, is_holiday, region_of


@pytest.mark.parametrize(
    ("code", "region"), [("DE", "DE"), ("de-be", "DE-BE"), ("us-ca", "US-CA"), ("GB-eng", "GB-ENG"), ("ca-NL", "CA-NL")]
)
def test_a_region_is_named_by_its_codes_in_any_case(code: str, region: str) -> None:
    assert region_of(code) == region


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("UK", "did you mean 'GB'?"),
        ("USA", "did you mean 'US'?"),
        ("Germany", "did you mean 'DE'?"),
        ("united_states", "did you mean 'US'?"),
        ("germny", "did you mean 'DE'?"),
        ("UK-ENG", "did you mean 'GB-ENG'?"),
        ("DE-Bayern", "did you mean 'DE-BY'?"),
        ("US-California", "did you mean 'US-CA'?"),
        ("DE-BER", "did you mean 'DE-BE'?"),
        ("DE-QQ", "DE has the parts BB, BE,"),
        ("DE-", "DE has the parts"),
        ("VA-X", "VA has no parts; write VA alone"),
        ("NYSE", "write a country's ISO code"),
        ("country_holidays", "write a country's ISO code"),
        ("", "write a country's ISO code"),
        ("-", "write a country's ISO code"),
        ("X" * 10_000, "write a country's ISO code"),
    ],
)
def test_another_name_is_refused_with_the_code_that_was_meant(code: str, says: str) -> None:
    with pytest.raises(InvalidSchedule, match=r"^holidays region ") as refusal:
        region_of(code)
    assert says in str(refusal.value)
    assert len(str(refusal.value)) < 500


def test_a_day_is_a_holiday_where_it_is_one() -> None:
    assert is_holiday("DE-BE", date(2026, 3, 8)), "women's day, in Berlin"
    assert not is_holiday("DE-BY", date(2026, 3, 8))
    assert is_holiday("US", date(2021, 12, 31)), "new year's day fell on a Saturday and was observed on the Friday"
    assert not is_holiday("DE", date(1899, 12, 25)), "no data before 1900"
    assert not is_holiday("DE", date(2101, 12, 25)), "nor after 2100"


def test_the_version_of_the_holidays_is_among_the_inputs() -> None:
    """Invariant 8: hosts with other holidays compute other ticks."""
    inputs = own_inputs()
    assert inputs.inputs_id == f"{inputs.zone_data}/{inputs.engine}/{holiday_data_version()}"
    assert are_same(f"{inputs.zone_data}/{inputs.engine}", inputs.inputs_id)
    assert not are_same(f"{inputs.inputs_id}0", inputs.inputs_id)
    assert not are_same("", inputs.inputs_id)


def test_the_package_is_loaded_for_jobs_that_ask_for_it_alone() -> None:
    program = (
        "import sys; from sexton.inputs import own_inputs; own_inputs(); import sexton.schedule_specs; "
        "assert 'holidays' not in sys.modules; from sexton.public_holidays import region_of; region_of('DE-BE'); "
        "assert 'holidays' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
