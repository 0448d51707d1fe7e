"""Commands of `kexpr-harness`, one module each; `harness.cli` names them."""
