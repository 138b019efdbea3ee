"""One try, against real receivers on this machine. Names are looked up by resolvers that the tests make."""

import asyncio
import json
import socket
import time

import pytest
from receivers import certificate, listening, receiving, respond
from standardwebhooks import Webhook as Verifier

from ledger.deliveries import Parcel
from ledger.settings import Settings
from ledger.tables import Delivery, Webhook
from ledger.webhooks import _new
from worker.sender import Sender, render

SEED, SECRET = _new("")
DATA = {
    "job": "job_" + "0" * 32,
    "kind": "noop",
    "state": "succeeded",
    "labels": {},
    "made": {},
    "links": {"job": "/v1/jobs/job_x", "report": "/v1/jobs/job_x/report.json"},
}
OURS = ["127.0.0.1/32"]


def parcel(url: str) -> Parcel:
    webhook = Webhook(id="webhook_" + "0" * 32, url=url, seed=SEED, hint=SECRET[:10])
    delivery = Delivery(id="delivery_" + "0" * 32, type="job.succeeded", data=DATA, tries=1, created_at=1_790_000_000.0)
    return Parcel(delivery, webhook, at=time.time())


def settings(**changes) -> Settings:
    return Settings(**{"webhook_private_networks": OURS, "webhook_seconds": 2, **changes})


def send(url: str, resolver=None, **changes):
    sender = Sender(settings(**changes), *([resolver] if resolver else []))
    return asyncio.run(sender.send(parcel(url)))


class Changing:
    """A resolver that says something else every time, as one does that means ill."""

    def __init__(self, *answers: list[str]) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        return self._answers[min(len(self.asked), len(self._answers)) - 1]


@pytest.fixture
def receiver():
    with receiving() as running:
        yield running


class TestWhatIsSent:
    def test_a_signed_body_that_a_receiver_can_verify(self, receiver):
        outcome = send(receiver.url())
        assert (outcome.status, outcome.reason) == (204, None)
        ((headers, body),) = receiver.requests
        said = Verifier(SECRET).verify(body, headers)
        assert said == {"type": "job.succeeded", "timestamp": "2026-09-21T14:13:20.000Z", "data": DATA}
        assert headers["content-type"] == "application/json"
        assert headers["host"] == f"127.0.0.1:{receiver.port}"
        assert headers["webhook-id"] == "delivery_" + "0" * 32

    def test_links_are_whole_where_the_service_knows_its_address(self):
        body = json.loads(render(parcel("https://x.example/"), "https://cards.example/base/"))
        assert body["data"]["links"]["job"] == "https://cards.example/base/v1/jobs/job_x"

    def test_every_try_has_the_same_body(self):
        assert render(parcel("https://a.example/"), "") == render(parcel("https://b.example/"), "")

    def test_no_proxy_of_the_environment_is_asked(self, receiver, monkeypatch):
        with listening("127.0.0.1") as proxy:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            assert send(receiver.url()).status == 204
            assert proxy.came == []


class TestWhatIsAnswered:
    @pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
    def test_no_is_no(self, receiver, status):
        receiver.answer = lambda handler: respond(handler, status, b"no")
        outcome = send(receiver.url())
        assert (outcome.status, outcome.final) == (status, False)
        assert str(status) in outcome.reason

    def test_gone_is_for_good(self, receiver):
        receiver.answer = lambda handler: respond(handler, 410)
        assert send(receiver.url()).final

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_a_redirect_is_not_followed(self, receiver, status):
        with receiving() as elsewhere:
            receiver.answer = lambda handler: respond(handler, status, Location=elsewhere.url())
            outcome = send(receiver.url())
            assert "not followed" in outcome.reason
            assert (len(receiver.requests), elsewhere.requests) == (1, [])

    def test_a_long_answer_is_not_read_to_its_end(self, receiver):
        written = 0

        def flood(handler):
            nonlocal written
            handler.send_response(200)
            handler.end_headers()
            while True:
                handler.wfile.write(b"x" * 65536)
                written += 65536

        receiver.answer = flood
        assert send(receiver.url()).reason is None
        time.sleep(0.3)
        assert written < 64 * 2**20

    def test_an_answer_that_does_not_end_is_one(self, receiver):
        def drip(handler):
            handler.send_response(200)
            handler.end_headers()
            while True:
                handler.wfile.write(b"x")
                time.sleep(0.1)

        receiver.answer = drip
        outcome = send(receiver.url(), webhook_seconds=5)
        assert (outcome.status, outcome.reason) == (200, None)
        assert outcome.seconds < 3

    def test_what_is_no_http(self, receiver):
        receiver.answer = lambda handler: handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        assert "cannot be reached" in send(receiver.url()).reason


class TestTheDeadline:
    def test_a_receiver_that_hangs(self, receiver):
        receiver.answer = lambda handler: time.sleep(5)
        outcome = send(receiver.url(), webhook_seconds=0.5)
        assert outcome.status is None
        assert "within 0.5 s" in outcome.reason
        assert outcome.seconds < 1.5

    def test_one_that_drips_its_headers(self, receiver):
        def drip(handler):
            for letter in b"HTTP/1.1 200 OK\r\n" + b"X-Slow: 1\r\n" * 100:
                handler.wfile.write(bytes([letter]))
                time.sleep(0.05)

        receiver.answer = drip
        assert send(receiver.url(), webhook_seconds=0.5).seconds < 1.5

    def test_a_lookup_that_hangs(self):
        def hang(host, port):
            time.sleep(3)
            return ["127.0.0.1"]

        assert send("http://slow.example/", hang, webhook_seconds=0.5).seconds < 1.5

    def test_nobody_there(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        outcome = send(f"http://127.0.0.1:{port}/")
        assert "cannot be reached" in outcome.reason

    def test_a_second_address_is_tried_where_the_first_does_not_answer(self):
        with receiving("127.0.0.2") as second:
            resolver = Changing(["127.0.0.1", "127.0.0.2"])
            outcome = send(second.url("two.example"), resolver, webhook_private_networks=["127.0.0.0/8"])
            assert outcome.status == 204
            assert resolver.asked == ["two.example"]


class TestAddresses:
    def test_a_name_that_leads_nowhere(self):
        def unknown(host, port):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        assert "not known" in send("https://nowhere.example/", unknown).reason

    @pytest.mark.parametrize(
        "answer", ["127.0.0.2", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.2", "fd00::1", "0.0.0.0"]
    )
    def test_a_private_one_is_not_connected_to(self, answer):
        outcome = send("https://inside.example/", Changing([answer]))
        assert "no address of the internet" in outcome.reason

    def test_nor_one_that_hides_behind_a_public_one(self):
        assert "127.0.0.2" in send("https://both.example/", Changing(["1.1.1.1", "127.0.0.2"])).reason

    def test_one_that_becomes_private_on_the_second_look(self):
        """It was public when the webhook was made, and is not when the delivery is due."""
        from service.webhooks.address import check_address

        with listening("127.0.0.2") as inside:
            resolver = Changing(["93.184.216.34"], ["127.0.0.2"])
            url = f"https://rebound.example:{inside.port}/"
            check_address(url, settings(), resolver)
            outcome = send(url, resolver)
            assert outcome.reason == "rebound.example is at 127.0.0.2, which is no address of the internet"
            assert inside.came == []

    def test_one_that_changes_between_the_check_and_the_connection(self):
        """What was checked is what is connected to: nothing is looked up in between."""
        with receiving("127.0.0.1") as good, receiving("127.0.0.2", good.port) as bad:
            resolver = Changing(["127.0.0.1"], ["127.0.0.2"])
            outcome = send(good.url("rebound.example"), resolver)
            assert (outcome.status, resolver.asked) == (204, ["rebound.example"])
            assert (len(good.requests), bad.requests) == (1, [])
            assert good.requests[0][0]["host"] == f"rebound.example:{good.port}"

    def test_nothing_but_the_resolver_looks_a_name_up(self, receiver, monkeypatch):
        asked = []
        real = socket.getaddrinfo
        monkeypatch.setattr(
            socket, "getaddrinfo", lambda host, *more, **and_: asked.append(host) or real(host, *more, **and_)
        )
        assert send(receiver.url("name.example"), Changing(["127.0.0.1"])).status == 204
        assert "name.example" not in [name.decode() if isinstance(name, bytes) else name for name in asked]

    def test_plain_http_stays_in_networks_that_were_allowed(self):
        assert "take https" in send("http://outside.example/", Changing(["1.1.1.1"])).reason


class TestTls:
    @pytest.fixture
    def trusted(self, tmp_path, monkeypatch):
        path, context = certificate(tmp_path, "hooks.example")
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        return context

    def test_name_and_certificate_are_those_of_the_address(self, trusted):
        """Though what is connected to is a number."""
        named = []
        trusted.sni_callback = lambda socket, name, context: named.append(name)
        with receiving(tls=trusted) as receiver:
            outcome = send(receiver.url("hooks.example", "https"), Changing(["127.0.0.1"]))
            assert (outcome.status, outcome.reason) == (204, None)
            assert named == ["hooks.example"]

    def test_a_certificate_of_another_name(self, trusted):
        with receiving(tls=trusted) as receiver:
            outcome = send(receiver.url("other.example", "https"), Changing(["127.0.0.1"]))
            assert "certificate" in outcome.reason
            assert receiver.requests == []

    def test_a_certificate_that_nobody_has_signed(self, tmp_path):
        _, context = certificate(tmp_path, "hooks.example")
        with receiving(tls=context) as receiver:
            outcome = send(receiver.url("hooks.example", "https"), Changing(["127.0.0.1"]))
            assert "not to be trusted" in outcome.reason
            assert receiver.requests == []


def test_another_setting_than_the_webhook_was_made_with_sends_nothing(receiver):
    assert "rotate" in send(receiver.url(), webhook_secret="another").reason
    assert receiver.requests == []


def test_the_default_is_ten_seconds_and_days_of_tries():
    default = Settings()
    assert default.webhook_seconds == 10
    assert 2 * 86400 < sum(default.webhook_pauses) < 7 * 86400
    assert default.webhook_private_networks == []
