"""Small policies for the kernel, learned from trained models: `headway distill` (docs/int8.md)."""
