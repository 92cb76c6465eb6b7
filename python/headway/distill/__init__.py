"""Small policies for the kernel, made of trained ones: `headway distill` (docs/int8.md)."""
