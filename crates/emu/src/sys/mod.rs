//! System calls: the only place that needs `unsafe`.
