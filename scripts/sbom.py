# SPDX-License-Identifier: MIT
"""The bill of materials of a release as SPDX 2.3 (JSON): sbom.py TARBALL VERSION SECONDS

SECONDS is the time of the commit since 1970, which the document has as its own. It lists every file of
the tarball with its checksums and licence, and what the software may be linked with."""

import hashlib
import json
import sys
import tarfile
import time

# Name, licence, and what it is for. None of them is in the tarball.
DEPENDENCIES = [
    ("PCRE2", "BSD-3-Clause", "tokenizers of libmha_model"),
    ("utf8proc", "MIT", "tokenizers of libmha_model"),
    ("libmicrohttpd", "LGPL-2.1-or-later", "mha serve; optional"),
    ("libpng", "libpng-2.0", "mha conv; optional"),
    ("MPI", "NOASSERTION", "libmha_mpi; optional, any implementation"),
]


def files_of(path: str) -> list[dict[str, object]]:
    files = []
    with tarfile.open(path) as archive:
        for member in sorted(archive.getmembers(), key=lambda m: m.name):
            stream = archive.extractfile(member) if member.isfile() else None
            if stream is None:
                continue
            data = stream.read()
            name = member.name.split("/", 1)[1]
            files.append(
                {
                    "SPDXID": "SPDXRef-File-" + hashlib.sha1(name.encode()).hexdigest(),
                    "fileName": "./" + name,
                    "checksums": [
                        {"algorithm": "SHA1", "checksumValue": hashlib.sha1(data).hexdigest()},
                        {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()},
                    ],
                    "licenseConcluded": "MIT",
                    "licenseInfoInFiles": ["MIT"],
                    "copyrightText": "NOASSERTION",
                }
            )
    return files


def verification_code(files: list[dict[str, object]]) -> str:
    """As SPDX defines it: the SHA-1 of all sorted SHA-1 checksums."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)  # type: ignore[index]
    return hashlib.sha1("".join(sums).encode()).hexdigest()


def package(name: str, licence: str, **more: object) -> dict[str, object]:
    return {
        "SPDXID": f"SPDXRef-Package-{name}",
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "NOASSERTION",
        **more,
    }


def relation(a: str, kind: str, b: str) -> dict[str, str]:
    return {"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}


def document(path: str, version: str, seconds: int) -> dict[str, object]:
    files = files_of(path)
    with open(path, "rb") as stream:
        checksum = hashlib.sha256(stream.read()).hexdigest()
    own = package(
        "libmha",
        "MIT",
        versionInfo=version,
        packageFileName=path.rsplit("/", 1)[-1],
        filesAnalyzed=True,
        checksums=[{"algorithm": "SHA256", "checksumValue": checksum}],
        packageVerificationCode={"packageVerificationCodeValue": verification_code(files)},
        licenseInfoFromFiles=["MIT"],
    )
    others = [package(name, licence, comment=use) for name, licence, use in DEPENDENCIES]
    root = str(own["SPDXID"])
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"libmha-{version}",
        "documentNamespace": f"urn:libmha:{version}:{checksum}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds)),
            "creators": ["Tool: scripts/sbom.py"],
        },
        "packages": [own, *others],
        "files": files,
        "relationships": [
            relation("SPDXRef-DOCUMENT", "DESCRIBES", root),
            *(relation(root, "CONTAINS", str(file["SPDXID"])) for file in files),
            *(relation(root, "DEPENDS_ON", str(other["SPDXID"])) for other in others[:2]),
            *(
                relation(str(other["SPDXID"]), "OPTIONAL_DEPENDENCY_OF", root)
                for other in others[2:]
            ),
        ],
    }


def main() -> None:
    path, version, seconds = sys.argv[1:]
    json.dump(document(path, version, int(seconds)), sys.stdout, indent=1)
    print()


main()
