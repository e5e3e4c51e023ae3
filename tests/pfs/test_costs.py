"""The settings; their arithmetic is tested beside it, in crates/burstio/tests/pfs_costs.rs."""

from burstlab.pfs.emulation import Emulation


def test_the_flags_say_the_same_again():
    assert Emulation(metadata_rate=2500).arguments() == [
        *("--metadata-latency-ms", "1", "--io-latency-ms", "0.5"),
        *("--bandwidth-mb-s", "200", "--metadata-rate", "2500"),
    ]
