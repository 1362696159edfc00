"""ZooKeeper with a lock on its door: digest logins, permissions, TLS; and what is said to whom is not let in."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl
from structlog.testing import capture_logs

from sexton.errors import InvalidSetting
from sexton.process_settings import CoordinatorAccess
from sexton_scheduler.election.candidate import Standing
from sexton_scheduler.election.ensemble import Entrance
from tests.support.certificates import Authority, tls_properties
from tests.support.elections import LONG, Candidates, becomes, elected_again, onlooker, says
from tests.support.ports import free_port
from tests.support.waiting import eventually
from tests.support.zookeeper import ZooKeeperServer

LOGIN = CoordinatorAccess(login="sexton:pa:ss")
STRANGER = CoordinatorAccess(login="sexton:wrong")


@pytest.fixture
def path() -> str:
    """Of its own from the root on: what is made with a login lets nobody else in below it."""
    return f"/entrance-{uuid.uuid4().hex}"


# --- digest -----------------------------------------------------------------------------------------


def test_what_sexton_makes_only_its_own_user_may_touch(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str
) -> None:
    elected_again(candidate(zookeeper_server.hosts, access=LOGIN))
    with onlooker(zookeeper_server.hosts) as nobody:
        with pytest.raises(NoAuthError):
            nobody.get_children(path)
        with pytest.raises(NoAuthError):
            nobody.create(f"{path}/election/x__lock__0000000000")
        with pytest.raises(NoAuthError):
            nobody.set(path, b"")
    with onlooker(zookeeper_server.hosts, "sexton:pa:ss") as self_:
        (znode,) = self_.get_children(f"{path}/election")
        for made in (path, f"{path}/election", f"{path}/election/{znode}"):
            acls, _ = self_.get_acls(made)
            assert [(acl.id.scheme, acl.id.id.partition(":")[0]) for acl in acls] == [("digest", "sexton")]


@pytest.mark.parametrize(
    ("access", "said"),
    [(CoordinatorAccess(), "set coordinator_login"), (STRANGER, "user or password in coordinator_login is wrong")],
)
def test_whoever_may_not_campaign_says_so_once_and_in_its_status(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, access: CoordinatorAccess, said: str
) -> None:
    elected_again(candidate(zookeeper_server.hosts, access=LOGIN))
    with capture_logs() as logs:
        other = candidate(zookeeper_server.hosts, "node-2", access=access)
        other.campaign()
        status = says(other, said)
        eventually(lambda: logs, LONG, "it is logged")
        tries = count_tries(other)
        eventually(lambda: tries() >= 4, LONG, "it has tried again")
        assert other.standing() is Standing.WAITING
        other.close()
    (entry,) = [entry for entry in logs if entry["event"] == "zookeeper.trouble"]
    assert said in entry["reason"]
    assert entry["log_level"] == "error"
    assert "wrong:" not in status + str(logs)
    assert "sexton:" not in status + str(logs)


def count_tries(candidate: object) -> Callable[[], int]:
    """How often the candidate has been refused since now."""
    count = 0
    original = candidate._stumbled  # type: ignore[attr-defined]  # looked at from outside

    def stumbled(error: Exception) -> None:
        nonlocal count
        count += 1
        original(error)

    candidate._stumbled = stumbled  # type: ignore[attr-defined]  # as above
    return lambda: count


def test_a_permission_taken_away_is_said_and_given_back_is_used(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str
) -> None:
    only = candidate(zookeeper_server.hosts, access=LOGIN)
    elected_again(only)
    with onlooker(zookeeper_server.hosts, "sexton:pa:ss") as owner:
        owner.add_auth("digest", "root:root")
        owner.set_acls(f"{path}/election", [make_digest_acl("root", "root", all=True)])
        assert not only.confirm()
        says(only, "that user's permission was taken away")
        only.resign()
        only.campaign()
        says(only, "that user's permission was taken away")
        owner.set_acls(f"{path}/election", [make_digest_acl("sexton", "pa:ss", all=True)])
    elected_again(only)
    assert "permission" not in only.describe()


def test_a_path_that_others_made_open_is_used_as_it_is_with_one_warning(
    zookeeper_server: ZooKeeperServer, candidate: Candidates, path: str
) -> None:
    with onlooker(zookeeper_server.hosts) as client:
        client.ensure_path(path, acl=OPEN_ACL_UNSAFE)
    with capture_logs() as logs:
        only = candidate(zookeeper_server.hosts, access=LOGIN)
        for _ in range(3):
            elected_again(only)
            only.resign()
    assert [entry["path"] for entry in logs if entry["event"] == "zookeeper.path_open_to_anybody"] == [path]


def test_servers_that_take_no_logins_are_said_to_refuse_it(candidate: Candidates) -> None:
    properties = {"zookeeper.DigestAuthenticationProvider.enabled": "false"}
    with ZooKeeperServer(properties=properties) as server, capture_logs() as logs:
        only = candidate(server.hosts, access=LOGIN)
        only.campaign()
        says(only, "the login in coordinator_login")
        clients: set[int] = set()
        keep: list[object] = []  # so that no two have one id

        def has_been_replaced() -> bool:
            if only._connection is not None:
                keep.append(only._connection)
                clients.add(id(only._connection))
            return len(clients) >= 3

        eventually(has_been_replaced, LONG, "kazoo, which ends for good on that, is replaced again and again")
        only.close()
    said = [entry["event"] for entry in logs]
    assert [said.count(event) for event in ("zookeeper.trouble", "zookeeper.client_replaced")] == [1, 1]


# --- TLS --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Secured:
    """A server that speaks TLS on `port`, to clients with a certificate of `authority` alone."""

    server: ZooKeeperServer
    port: int
    authority: Authority
    folder: Path

    def access(self, ca: Path | None = None, *, with_certificate: bool = True) -> CoordinatorAccess:
        own = self.authority.sign("client")
        files = (str(own.certificate), str(own.key)) if with_certificate else (None, None)
        return CoordinatorAccess(None, str(ca or self.authority.certificate), *files)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder)
    keystore = authority.keystore("server", "DNS:localhost")
    port = free_port()
    config = {"secureClientPort": str(port), "secureClientPortAddress": "127.0.0.1"}
    with ZooKeeperServer(config=config, properties=tls_properties(keystore, authority.certificate)) as server:
        yield Secured(server, port, authority, folder)


def test_an_election_over_tls_with_a_certificate_on_both_sides(secured: Secured, candidate: Candidates) -> None:
    hosts = f"localhost:{secured.port}"
    first, second = (candidate(hosts, name, access=secured.access()) for name in ("1", "2"))
    elected_again(first)
    says(first, f"connected to {hosts}")
    second.campaign()
    first.resign()
    becomes(second, Standing.ELECTED)
    assert second.confirm()
    eventually(lambda: [seen.state for seen in candidate.servers["2"]] == ["standalone"], LONG, "it is asked over TLS")


def test_a_node_without_a_certificate_is_told_to_have_one(secured: Secured, candidate: Candidates) -> None:
    only = candidate(f"localhost:{secured.port}", access=secured.access(with_certificate=False))
    only.campaign()
    says(only, "does not accept this node's certificate")


def test_a_renewed_certificate_is_used_without_a_restart(
    secured: Secured, candidate: Candidates, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "strangers").sign("stranger")
    files = [tmp_path / "own.pem", tmp_path / "own.key"]
    for file, content in zip(files, (stranger.certificate, stranger.key), strict=True):
        file.write_bytes(content.read_bytes())
    ca = str(secured.authority.certificate)
    only = candidate(f"localhost:{secured.port}", access=CoordinatorAccess(None, ca, *map(str, files)))
    only.campaign()
    says(only, "does not accept this node's certificate")
    renewed = secured.authority.sign("renewed")
    files[0].write_bytes(b"half a")  # being written: the one before is used meanwhile
    for file, content in zip(files, (renewed.certificate, renewed.key), strict=True):
        file.write_bytes(content.read_bytes())
    elected_again(only)


def test_servers_of_another_authority_are_not_believed(secured: Secured, candidate: Candidates) -> None:
    other = Authority(secured.folder, "other")
    only = candidate(f"localhost:{secured.port}", access=secured.access(other.certificate))
    only.campaign()
    says(only, "is not signed by the authority in coordinator_ca")


def test_a_server_of_another_name_is_not_believed(secured: Secured, candidate: Candidates) -> None:
    only = candidate(f"127.0.0.1:{secured.port}", access=secured.access())
    only.campaign()
    says(only, f"the certificate of 127.0.0.1:{secured.port} is for another name")


def test_tls_to_a_plain_port_and_plain_to_a_tls_port_are_told_apart(secured: Secured, candidate: Candidates) -> None:
    to_plain = candidate(f"localhost:{secured.server.port}", access=secured.access())
    to_plain.campaign()
    says(to_plain, "does not speak TLS")
    plain = candidate(f"localhost:{secured.port}", "node-2")
    plain.campaign()
    says(plain, "or speaks TLS only")


def test_what_is_no_certificate_is_refused_before_anything_connects(secured: Secured, tmp_path: Path) -> None:
    own, other = secured.authority.sign("own"), secured.authority.sign("someone")
    ca, junk = str(secured.authority.certificate), tmp_path / "junk"
    junk.write_text("junk\n")
    for access, said in (
        (CoordinatorAccess(ca=str(tmp_path / "none")), "coordinator_ca: .* cannot be read .No such file"),
        (CoordinatorAccess(ca=str(junk)), "coordinator_ca: .* cannot be used"),
        (CoordinatorAccess(None, ca, str(own.certificate), str(tmp_path / "none")), "cannot be read .No such file"),
        (CoordinatorAccess(None, ca, str(own.certificate), str(junk)), "cannot be used"),
        (CoordinatorAccess(None, ca, str(own.certificate), str(other.key)), "key values mismatch"),
    ):
        with pytest.raises(InvalidSetting, match=said):
            Entrance.open(access)
