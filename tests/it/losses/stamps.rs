//! Tables whose created_at somebody can set although a default or trigger stands there.
