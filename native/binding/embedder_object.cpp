#include "binding/embedder_object.h"

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "binding/error.h"
#include "binding/fields.h"
#include "binding/replies.h"
#include "binding/worker.h"
#include "llama/embedder.h"

namespace fermata {

namespace {

constexpr std::int32_t kMaxTokens = 1 << 16;
constexpr std::uint32_t kMaxTexts = 4096;

// Shared by the object and the workers under way, so that closing needs not wait for them.
struct SharedEmbedder {
    std::mutex mutex;  // of embed()
    std::unique_ptr<Embedder> embedder;
};

template <class Item, class Convert>
Napi::Array to_array(Napi::Env env, const std::vector<Item>& items, Convert convert) {
    Napi::Array array = Napi::Array::New(env, items.size());
    std::uint32_t index = 0;
    for (const Item& item : items)
        array.Set(index++, convert(item));
    return array;
}

Napi::Value tokenize(const std::shared_ptr<SharedEmbedder>& shared,
                     const Napi::CallbackInfo& info) {
    if (!info[0].IsArray() || info[0].As<Napi::Array>().Length() > kMaxTexts)
        throw invalid_argument("tokenize takes an array of texts.");
    const auto list = info[0].As<Napi::Array>();
    auto texts = std::make_shared<std::vector<std::string>>();
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
        const Napi::Value text = list.Get(i);
        if (!text.IsString()) throw invalid_argument("tokenize takes an array of texts.");
        texts->push_back(text.As<Napi::String>());
    }
    auto tokens = std::make_shared<std::vector<std::vector<Token>>>();
    return Worker::start(
        info.Env(),
        [shared, texts, tokens]() -> std::optional<Error> {
            for (const std::string& text : *texts) {
                auto its = shared->embedder->tokenize(text);
                if (!its.ok()) return its.error();
                tokens->push_back(std::move(its.value()));
            }
            return std::nullopt;
        },
        [tokens](Napi::Env env) -> Napi::Value {
            return to_array(env, *tokens,
                            [env](const auto& each) { return from_tokens(env, each); });
        });
}

Napi::Value tokenize_pairs(const std::shared_ptr<SharedEmbedder>& shared,
                           const Napi::CallbackInfo& info) {
    if (!info[0].IsString() || !info[1].IsArray() || info[1].As<Napi::Array>().Length() > kMaxTexts)
        throw invalid_argument("tokenizePairs takes a query and an array of documents.");
    const std::string query = info[0].As<Napi::String>();
    const auto list = info[1].As<Napi::Array>();
    auto documents = std::make_shared<std::vector<std::string>>();
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
        const Napi::Value text = list.Get(i);
        if (!text.IsString())
            throw invalid_argument("tokenizePairs takes a query and an array of documents.");
        documents->push_back(text.As<Napi::String>());
    }
    auto tokens = std::make_shared<std::vector<std::vector<Token>>>();
    return Worker::start(
        info.Env(),
        [shared, query, documents, tokens]() -> std::optional<Error> {
            for (const std::string& document : *documents) {
                auto pair = shared->embedder->tokenize_pair(query, document);
                if (!pair.ok()) return pair.error();
                tokens->push_back(std::move(pair.value()));
            }
            return std::nullopt;
        },
        [tokens](Napi::Env env) -> Napi::Value {
            return to_array(env, *tokens,
                            [env](const auto& each) { return from_tokens(env, each); });
        });
}

Napi::Value embed(const std::shared_ptr<SharedEmbedder>& shared, const Napi::CallbackInfo& info) {
    if (!info[0].IsArray() || info[0].As<Napi::Array>().Length() > kMaxTexts)
        throw invalid_argument("embed takes an array of tokens.");
    const auto list = info[0].As<Napi::Array>();
    const std::int32_t vocabulary = shared->embedder->model().vocabulary().size();
    auto inputs = std::make_shared<std::vector<std::vector<Token>>>();
    for (std::uint32_t i = 0; i < list.Length(); ++i)
        inputs->push_back(to_tokens(list.Get(i), "tokens", vocabulary));
    auto vectors = std::make_shared<std::vector<std::vector<float>>>();
    return Worker::start(
        info.Env(),
        [shared, inputs, vectors]() -> std::optional<Error> {
            const std::lock_guard lock(shared->mutex);
            for (const auto& tokens : *inputs) {
                auto vector = shared->embedder->embed(tokens);
                if (!vector.ok()) return vector.error();
                vectors->push_back(std::move(vector.value()));
            }
            return std::nullopt;
        },
        [vectors](Napi::Env env) -> Napi::Value {
            return to_array(env, *vectors, [env](const std::vector<float>& vector) {
                Napi::Float32Array array = Napi::Float32Array::New(env, vector.size());
                std::copy(vector.begin(), vector.end(), array.Data());
                return array;
            });
        });
}

Napi::Object make_object(Napi::Env env, const std::shared_ptr<SharedEmbedder>& shared) {
    const Embedder& embedder = *shared->embedder;
    Napi::Object object = Napi::Object::New(env);
    object.Set("dimensions", Napi::Number::New(env, embedder.dimensions()));
    object.Set("maxTokens", Napi::Number::New(env, embedder.max_tokens()));
    object.Set("vocabularySize", Napi::Number::New(env, embedder.model().vocabulary().size()));
    const auto method = [&](const char* name, auto body) {
        const auto bound = [shared, body](const Napi::CallbackInfo& call) {
            return body(shared, call);
        };
        object.Set(name, Napi::Function::New(env, guarded(bound), name));
    };
    method("tokenize", tokenize);
    method("tokenizePairs", tokenize_pairs);
    method("embed", embed);
    return object;
}

}  // namespace

Napi::Value load_embedder(const Napi::CallbackInfo& info) {
    const Fields fields(info[0], "");
    ModelOptions options;
    options.path = fields.text("modelPath");
    options.gpu_layers = fields.int32("gpuLayers", -1, 10'000);
    options.embeds = true;
    EmbedderOptions settings;
    settings.max_tokens = fields.int32("maxTokens", 1, kMaxTokens);
    settings.threads = fields.int32("threads", 1, 512);
    settings.pooling = fields.text("pooling");
    settings.ranks = fields.boolean("ranks");
    auto shared = std::make_shared<SharedEmbedder>();
    return Worker::start(
        info.Env(),
        [shared, options, settings]() -> std::optional<Error> {
            auto model = Model::load(options);
            if (!model.ok()) return model.error();
            auto embedder = Embedder::create(std::move(model.value()), settings);
            if (!embedder.ok()) return embedder.error();
            shared->embedder = std::move(embedder.value());
            return std::nullopt;
        },
        [shared](Napi::Env env) -> Napi::Value { return make_object(env, shared); });
}

}  // namespace fermata
