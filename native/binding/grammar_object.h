// The object that JavaScript has of a compiled grammar.
#pragma once

#include <memory>

#include "binding/node_api.h"
#include "core/matcher.h"

namespace fermata {

// Used on the JavaScript thread only. Emptied when the engine closes, since a grammar keeps the
// model, and JavaScript may keep the object for long.
struct GrammarHandle {
    std::shared_ptr<const Grammar> grammar;
    const void* engine = nullptr;  // whose vocabulary it was compiled for
};

Napi::Object make_grammar_object(Napi::Env env, std::shared_ptr<GrammarHandle> handle,
                                 double compile_microseconds);

// Throws a Refusal: `invalid_argument` when `value` is no grammar of this engine.
std::shared_ptr<const Grammar> to_grammar(const Napi::Value& value, const void* engine);

}  // namespace fermata
