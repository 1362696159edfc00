"""An authority of the test's own and what it signs, made by openssl: PEM for clients, keystores for ZooKeeper."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

STORE_PASSWORD = "keystore"  # noqa: S105 - it guards a key that lives for one test


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates in `folder`, under `name`."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self.certificate = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        _openssl(
            *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
            *("-subj", f"/CN={name}", "-keyout", str(self._key), "-out", str(self.certificate)),
        )

    def sign(self, name: str, alternatives: str = "", days: int = 2) -> Signed:
        """A certificate for `name`. `alternatives`: e.g. `IP:127.0.0.1,DNS:localhost`; `days` below 0: long over."""
        request, extensions = self._folder / f"{name}.csr", self._folder / f"{name}.ext"
        signed = Signed(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        _openssl(
            *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-subj", f"/CN={name}", "-keyout", str(signed.key), "-out", str(request)),
        )
        extensions.write_text(f"subjectAltName={alternatives}\n" if alternatives else "basicConstraints=CA:FALSE\n")
        _openssl(
            *("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key)),
            *("-CAcreateserial", "-days", str(days), "-extfile", str(extensions), "-out", str(signed.certificate)),
        )
        return signed

    def keystore(self, name: str, alternatives: str, days: int = 2) -> Path:
        """A PKCS12 keystore with a certificate signed by this authority, as Java reads it."""
        signed, store = self.sign(name, alternatives, days), self._folder / f"{name}.p12"
        _openssl(
            *("pkcs12", "-export", "-inkey", str(signed.key), "-in", str(signed.certificate)),
            *("-name", name, "-passout", f"pass:{STORE_PASSWORD}", "-out", str(store)),
        )
        return store


def tls_properties(keystore: Path, trusted: Path) -> dict[str, str]:
    """What a ZooKeeper server is told of its keystore and of the authority whose clients it lets in."""
    return {
        "zookeeper.serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "zookeeper.ssl.keyStore.location": str(keystore),
        "zookeeper.ssl.keyStore.password": STORE_PASSWORD,
        "zookeeper.ssl.trustStore.location": str(trusted),
        "zookeeper.ssl.hostnameVerification": "false",  # the clients' names are not looked up
    }


def _openssl(*arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]} failed: {done.stderr}")
