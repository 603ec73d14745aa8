#include "binding/engine_object.h"

#include "binding/compile_worker.h"
#include "binding/error.h"
#include "binding/fields.h"
#include "binding/replies.h"
#include "binding/requests.h"
#include "binding/tokenize_worker.h"

namespace fermata {

namespace {

using Info = Napi::CallbackInfo;

std::shared_ptr<const Model> open_model(const EngineHost& host) {
    std::shared_ptr<const Model> model = host.open_loop() ? host.model() : nullptr;
    if (!model) throw Refusal("closed", "The engine is closed.");
    return model;
}

Napi::Value tokenize(EngineHost& host, const Info& info) {
    if (!info[0].IsString() || !info[1].IsString() || !info[2].IsBoolean()) {
        throw invalid_argument("tokenize takes a text, a guard and whether to add the BOS token.");
    }
    return TokenizeWorker::start(info.Env(), open_model(host), info[0].As<Napi::String>(),
                                 info[1].As<Napi::String>(), info[2].As<Napi::Boolean>());
}

Napi::Value detokenize(EngineHost& host, const Info& info) {
    const auto model = open_model(host);
    if (!info[1].IsBoolean()) throw invalid_argument("detokenize takes tokens and true or false.");
    const auto tokens = to_tokens(info[0], "tokens", model->vocabulary().size());
    const bool special = info[1].As<Napi::Boolean>();
    return from_bytes(info.Env(), model->tokenizer().detokenize(tokens, special));
}

Napi::Value compile_grammar(EngineHost& host, const Info& info) {
    const std::string kind = info[0].IsString() ? std::string(info[0].As<Napi::String>()) : "";
    if ((kind != "lark" && kind != "gbnf") || !info[1].IsString())
        throw invalid_argument("compileGrammar takes a kind, lark or gbnf, and a text.");
    open_model(host);
    return CompileWorker::start(info.Env(), host.shared_from_this(),
                                kind == "lark" ? GrammarKind::kLark : GrammarKind::kGbnf,
                                info[1].As<Napi::String>());
}

Napi::Value submit(EngineHost& host, const Info& info) {
    const auto model = open_model(host);
    host.submit(to_submit(info[0], model->vocabulary().size(), host.cells_per_sequence(), &host));
    return info.Env().Undefined();
}

Napi::Value resume(EngineHost& host, const Info& info) {
    const auto model = open_model(host);
    host.resume(to_resume(info[0], model->vocabulary().size(), &host));
    return info.Env().Undefined();
}

Napi::Value extend(EngineHost& host, const Info& info) {
    const auto model = open_model(host);
    ExtendRequest request =
        to_extend(info[0], model->vocabulary().size(), host.cells_per_sequence());
    host.extend(std::move(request));
    return info.Env().Undefined();
}

Napi::Value acknowledge(EngineHost& host, const Info& info) {
    const SequenceId id = to_sequence_id(info[0]);
    const double count = info[1].IsNumber() ? info[1].As<Napi::Number>().DoubleValue() : -1;
    if (!(count >= 0 && count <= 1e9)) throw invalid_argument("The count must not be negative.");
    if (EngineLoop* loop = host.open_loop()) {
        loop->acknowledge(id, static_cast<std::int32_t>(count));
    }
    return info.Env().Undefined();
}

}  // namespace

Napi::Object make_engine_object(Napi::Env env, std::shared_ptr<EngineHost> host,
                                Napi::Object cache) {
    Napi::Object object = Napi::Object::New(env);
    const auto method = [&](const char* name, auto body) {
        const auto bound = [host, body](const Info& info) -> Napi::Value {
            return body(*host, info);
        };
        object.Set(name, Napi::Function::New(env, guarded(bound), name));
    };
    // Calls that ignore ids they do not know.
    const auto by_id = [&](const char* name, auto call) {
        method(name, [call](EngineHost& engine, const Info& info) -> Napi::Value {
            call(engine, to_sequence_id(info[0]));
            return info.Env().Undefined();
        });
    };
    object.Set("model", from_model_info(env, host->model()->info()));
    object.Set("cache", cache);
    method("tokenize", tokenize);
    method("detokenize", detokenize);
    method("compileGrammar", compile_grammar);
    method("submit", submit);
    method("resume", resume);
    method("extend", extend);
    method("acknowledge", acknowledge);
    by_id("pause", [](EngineHost& engine, SequenceId id) {
        if (EngineLoop* loop = engine.open_loop()) loop->pause(id);
    });
    by_id("release", [](EngineHost& engine, SequenceId id) { engine.release(id); });
    by_id("cancel", [](EngineHost& engine, SequenceId id) { engine.cancel(id); });
    method("stats", [](EngineHost& engine, const Info& info) -> Napi::Value {
        return from_stats(info.Env(), engine.stats());
    });
    method("checkIntegrity",
           [](EngineHost& engine, const Info&) -> Napi::Value { return engine.check_integrity(); });
    method("close", [](EngineHost& engine, const Info&) -> Napi::Value { return engine.close(); });
    return object;
}

}  // namespace fermata
