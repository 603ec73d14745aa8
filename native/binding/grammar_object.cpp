#include "binding/grammar_object.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "binding/error.h"
#include "binding/fields.h"
#include "core/token_mask.h"

namespace fermata {

namespace {

constexpr napi_type_tag kGrammarTag = {0x6665726d61746131, 0x6772616d6d617231};

using Owner = std::shared_ptr<GrammarHandle>;

struct Walk {
    std::size_t accepted = 0;
    bool complete = false;
    std::vector<double> mask_microseconds;
    std::string error;
};

std::size_t count_allowed(TokenMask mask) {
    std::size_t count = 0;
    for (const std::uint32_t word : mask)
        count += static_cast<std::size_t>(std::popcount(word));
    return count;
}

Walk walk(Matcher& matcher, std::span<const Token> tokens) {
    Walk walk;
    std::vector<std::uint32_t> mask;
    for (std::size_t i = 0; i <= tokens.size(); ++i) {
        const auto started = std::chrono::steady_clock::now();
        if (!matcher.compute_mask(mask)) break;
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - started;
        walk.mask_microseconds.push_back(took.count());
        if (i == tokens.size()) {
            walk.complete = matcher.accepting();
            break;
        }
        const auto next = tokens.subspan(i, 1);
        // A mask of one token is forced text: the tokens given may cut the same text elsewhere.
        const bool allowed =
            allows(mask, next[0]) || (count_allowed(mask) == 1 && matcher.accepted(next) == 1);
        if (!allowed || !matcher.consume(next[0])) break;
        ++walk.accepted;
    }
    walk.error = matcher.error();
    return walk;
}

Napi::Value check(const GrammarHandle& handle, const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    if (!handle.grammar) throw Refusal("closed", "The engine is closed.");
    const auto tokens = to_tokens(info[0], "tokens", std::numeric_limits<std::int32_t>::max());
    const auto matcher = handle.grammar->make_matcher();
    if (!matcher) throw Refusal("out_of_memory", "There is no memory for the grammar.");
    const Walk outcome = walk(*matcher, tokens);
    Napi::Object object = Napi::Object::New(env);
    object.Set("accepted", Napi::Number::New(env, static_cast<double>(outcome.accepted)));
    object.Set("complete", Napi::Boolean::New(env, outcome.complete));
    object.Set("error", Napi::String::New(env, outcome.error));
    auto times = Napi::Float64Array::New(env, outcome.mask_microseconds.size());
    std::copy(outcome.mask_microseconds.begin(), outcome.mask_microseconds.end(), times.Data());
    object.Set("maskMicroseconds", times);
    return object;
}

}  // namespace

Napi::Object make_grammar_object(Napi::Env env, std::shared_ptr<GrammarHandle> handle,
                                 double compile_microseconds) {
    Napi::Object object = Napi::Object::New(env);
    const auto bytes = static_cast<double>(handle->grammar->bytes());
    object.Set("bytes", Napi::Number::New(env, bytes));
    object.Set("compileMicroseconds", Napi::Number::New(env, compile_microseconds));
    const auto bound = [handle](const Napi::CallbackInfo& info) { return check(*handle, info); };
    object.Set("check", Napi::Function::New(env, guarded(bound), "check"));
    auto* owner = new Owner(std::move(handle));
    const auto release = [](napi_env, void* data, void*) { delete static_cast<Owner*>(data); };
    if (napi_wrap(env, object, owner, release, nullptr, nullptr) != napi_ok) {
        delete owner;
        throw Refusal("internal", "The grammar cannot be connected to JavaScript.");
    }
    object.TypeTag(&kGrammarTag);
    return object;
}

std::shared_ptr<const Grammar> to_grammar(const Napi::Value& value, const void* engine) {
    void* owner = nullptr;
    if (!value.IsObject() || !value.As<Napi::Object>().CheckTypeTag(&kGrammarTag) ||
        napi_unwrap(value.Env(), value, &owner) != napi_ok) {
        throw invalid_argument("grammar must come from compileGrammar.");
    }
    const GrammarHandle& handle = **static_cast<Owner*>(owner);
    if (handle.engine != engine || !handle.grammar)
        throw invalid_argument("grammar belongs to another engine.");
    return handle.grammar;
}

}  // namespace fermata
