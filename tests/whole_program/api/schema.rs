//! A checker for the part of JSON schema that `openapi.json` uses.

use serde_json::Value;

/// Checks a value against a schema, and names the location of each mismatch.
pub(super) fn check(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    if let Some(choices) = schema["anyOf"].as_array() {
        let errors: Vec<String> =
            choices.iter().filter_map(|choice| check(value, choice, place).err()).collect();
        let fits_none = errors.len() == choices.len();
        return if fits_none { Err(errors.join("; or ")) } else { Ok(()) };
    }
    if let Some(words) = schema["enum"].as_array() {
        return fits(words.contains(value), value, schema, place);
    }
    match schema["type"].as_str() {
        None => Ok(()),
        Some("object") => check_object(value, schema, place),
        Some("array") => {
            let items = value.as_array().ok_or_else(|| format!("{place} is no list: {value}"))?;
            items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| check(item, &schema["items"], &format!("{place}[{index}]")))
        }
        Some("string") if schema["format"] == "date-time" => {
            let is_time = value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok());
            fits(is_time && value.as_str().is_some_and(|text| text.ends_with('Z')), value, schema, place)
        }
        Some("string") => fits(value.is_string(), value, schema, place),
        Some("integer") => fits(value.is_i64() || value.is_u64(), value, schema, place),
        Some("number") => fits(value.is_number(), value, schema, place),
        Some("boolean") => fits(value.is_boolean(), value, schema, place),
        Some("null") => fits(value.is_null(), value, schema, place),
        Some(other) => Err(format!("{place}: the schema has the unknown type {other}")),
    }
}

fn fits(does: bool, value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    if does { Ok(()) } else { Err(format!("{place}: {value} does not fit {schema}")) }
}

fn check_object(value: &Value, schema: &Value, place: &str) -> Result<(), String> {
    let object = value.as_object().ok_or_else(|| format!("{place} is no object: {value}"))?;
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("a name");
        if !object.contains_key(name) {
            return Err(format!("{place} lacks {name}"));
        }
    }
    for (name, member) in object {
        let place = format!("{place}.{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(known), _) => check(member, known, &place)?,
            (None, Value::Bool(false)) => return Err(format!("{place} is not in the schema")),
            (None, Value::Bool(true) | Value::Null) => {}
            (None, others) => check(member, others, &place)?,
        }
    }
    Ok(())
}
