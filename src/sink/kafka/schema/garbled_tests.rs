//! Schemas and rows that are almost right.

use super::avro::Avro;
use super::json_schema::JsonSchema;
use super::misfit::Misfit;
use super::protobuf::Protobuf;
use crate::garbled::Garbled;

const MOST: usize = 1 << 20;

/// The first line names the format, the last one is the row. None where nothing can be written by the schema.
fn written(text: &str) -> Option<Result<usize, Misfit>> {
    let (format, rest) = text.split_once('\n')?;
    let (schema, row) = rest.rsplit_once('\n')?;
    let mut out = Vec::new();
    let made = match format {
        "avro" => Avro::new(schema, &[], false).ok()?.encode(row.as_bytes(), MOST, &mut out),
        "protobuf" => Protobuf::new(schema, &[], None, false).ok()?.encode(row.as_bytes(), &mut out),
        _ => JsonSchema::new(schema, &[]).ok()?.encode(row.as_bytes(), &mut out),
    };
    Some(made.map(|()| out.len()))
}

#[test]
fn garbled_schemas_and_rows_end_in_bytes_or_misfits() {
    // With the stack of a worker thread.
    let work = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        let (mut fit, mut misfits, mut refused) = (0, 0, 0);
        for bytes in Garbled::new("schema") {
            match written(&String::from_utf8_lossy(&bytes)) {
                None => refused += 1,
                Some(Ok(_)) => fit += 1,
                Some(Err(misfit)) => {
                    misfits += 1;
                    assert!(!misfit.to_string().is_empty());
                }
            }
        }
        assert!(fit > 0 && misfits > 0 && refused > 0, "{fit} fit, {misfits} misfits, {refused} refused");
    });
    work.expect("starts").join().expect("passes");
}
