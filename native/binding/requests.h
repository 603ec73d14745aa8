// JavaScript objects (src/native/types.ts, addon-types.ts) to plain structs. Every value is
// checked; a wrong one throws a Refusal `invalid_argument`.
#pragma once

#include "binding/load_engine.h"
#include "binding/node_api.h"
#include "core/request.h"

namespace fermata {

LoadOptions to_load_options(const Napi::Value& value);

// `engine` is what grammars in the request must have been compiled for.
SubmitRequest to_submit(const Napi::Value& value, std::int32_t vocabulary_size,
                        std::int32_t cells_per_sequence, const void* engine);
ExtendRequest to_extend(const Napi::Value& value, std::int32_t vocabulary_size,
                        std::int32_t cells_per_sequence);
ResumeRequest to_resume(const Napi::Value& value, std::int32_t vocabulary_size, const void* engine);
SequenceId to_sequence_id(const Napi::Value& value);

}  // namespace fermata
