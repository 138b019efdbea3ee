from ipaddress import ip_address, ip_network

import pytest

from ledger import addresses
from ledger.addresses import Refused, check, is_internet, read

PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::10.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450:4001:829::200e"]
HTTPS = read("https://hooks.example/x")
HTTP = read("http://hooks.example/x")


class TestWhatIsTheInternet:
    @pytest.mark.parametrize("address", PRIVATE)
    def test_nothing_of_a_network_of_ours(self, address):
        with pytest.raises(Refused, match="no address of the internet"):
            check(HTTPS, [address], [])

    @pytest.mark.parametrize("address", PUBLIC)
    def test_what_anybody_reaches(self, address):
        assert is_internet(ip_address(address))
        assert check(HTTPS, [address], []) == [ip_address(address)]

    def test_one_bad_answer_spoils_all(self):
        with pytest.raises(Refused, match=r"10\.0\.0\.1"):
            check(HTTPS, ["1.1.1.1", "10.0.0.1"], [])

    def test_an_address_in_other_clothes_is_connected_to_as_what_it_is(self):
        assert check(HTTPS, ["::ffff:1.1.1.1"], []) == [ip_address("1.1.1.1")]


class TestNetworksOfOnesOwn:
    ours = [ip_network("10.1.0.0/16"), ip_network("fd00::/8")]

    @pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::7"])
    def test_what_was_allowed_is_gone_to_also_without_tls(self, address):
        assert check(HTTPS, [address], self.ours) == check(HTTP, [address], self.ours) != []

    @pytest.mark.parametrize("address", ["10.2.0.1", "127.0.0.1", "169.254.169.254"])
    def test_and_nothing_else(self, address):
        with pytest.raises(Refused):
            check(HTTPS, [address], self.ours)

    def test_plain_http_never_leaves_them(self):
        with pytest.raises(Refused, match="take https"):
            check(HTTP, ["1.1.1.1"], self.ours)


class TestReading:
    def test_host_port_and_path(self):
        place = read("https://Hooks.Example:8443/a/b?c=d")
        assert (place.host, place.port, place.path, place.origin) == (
            "hooks.example",
            8443,
            "/a/b?c=d",
            "hooks.example:8443",
        )
        assert read("https://hooks.example").path == "/"
        assert read("https://hooks.example:443/").origin == "hooks.example"
        assert read("http://[fd00::1]:80/").origin == "[fd00::1]"

    @pytest.mark.parametrize(
        ("url", "word"),
        [
            ("https://user:pass@hooks.example/", "signed"),
            ("https://user@hooks.example/", "signed"),
            ("https://hooks.example/#part", "#"),
            ("https:///path", "form"),
            ("https://hooks.example:99999/", "form"),
            ("https://hooks.example:x/", "form"),
            ("https://[::1/", "form"),
            ("ftp://hooks.example/", "form"),
            ("file:///etc/passwd", "form"),
            ("https://" + "a" * 64 + ".example/", "no name"),
            ("https://a..b/", "no name"),
        ],
    )
    def test_what_makes_no_sense_is_said(self, url, word):
        with pytest.raises(Refused, match=word):
            read(url)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"])
def test_other_spellings_of_this_machine_are_seen_through(host):
    with pytest.raises(Refused):
        check(read(f"https://{host}/"), addresses.look_up(host, 443), [])
