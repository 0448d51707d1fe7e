"""The yardstick of the proof: 48 calls of a plain SDK client on the same kind of rehearsal server, one process."""

import ssl

import httpx
import openai

from harness.evidence.rows import Slot
from harness.manifests import synthetic
from harness.proof.plan import proof_slots
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.codes import WireVersion
from kexpr.surfaces import presentation_segments_v1
from kexpr.wire.contract import OPEN_PROSE


def main() -> None:
    contract = OPEN_PROSE[WireVersion.KEXP_2]
    with RehearsalServer(answer_bytes) as server:
        context = ssl.create_default_context(cafile=server.seam.ca_pem_path)
        transport = httpx.HTTPTransport(uds=server.seam.socket_path, verify=context)
        http_client = httpx.Client(transport=transport)
        client = openai.OpenAI(api_key="rehearsal", max_retries=0, http_client=http_client)  # type: ignore[arg-type, unused-ignore]
        answers = [_ask(client, contract.instructions, _content(slot)) for slot in proof_slots()]
        http_client.close()
    assert len(answers) == 48


def _content(slot: Slot) -> str:
    manifest = presentation_segments_v1(synthetic(slot.pair.surface, slot.ordinal))
    return OPEN_PROSE[WireVersion.KEXP_2].issue(manifest, b"k" * 32, ("bench",)).content


def _ask(client: openai.OpenAI, instructions: str, content: str) -> str | None:
    completion = client.chat.completions.create(
        model="gpt-4.1-mini",
        messages=[{"role": "system", "content": instructions}, {"role": "user", "content": content}],
        max_completion_tokens=160,
        response_format={"type": "json_object"},
    )
    return completion.choices[0].message.content


if __name__ == "__main__":
    main()
