// SimulatedEngine and SharedFiles for scripts/simulate: an addon of its own, no server loads it.
#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_set>
#include <utility>

#include "binding/error.h"
#include "binding/fields.h"
#include "simulation/simulated_engine.h"

namespace fermata {

namespace {

constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostExact = std::int64_t{1} << 53;

FileSpeed to_speed(const Fields& fields) {
    return {.read_bytes_per_ms = fields.number("readBytesPerMs", 1, 1e12),
            .write_bytes_per_ms = fields.number("writeBytesPerMs", 1, 1e12),
            .latency_ms = fields.number("latencyMs", 0, 1e6)};
}

template <class Value>
void set(Napi::Object& object, const char* name, Value value) {
    object.Set(name, Napi::Number::New(object.Env(), static_cast<double>(value)));
}

// new SharedFiles({ readBytesPerMs, writeBytesPerMs, latencyMs })
class SharedFilesObject final : public Napi::ObjectWrap<SharedFilesObject> {
   public:
    explicit SharedFilesObject(const Napi::CallbackInfo& info)
        : ObjectWrap(info), files(std::make_shared<SharedFiles>(to_speed(Fields(info[0], "")))) {}

    static Napi::Function define(Napi::Env env) {
        return DefineClass(env, "SharedFiles",
                           {InstanceMethod("busyMs", &SharedFilesObject::busy_ms)});
    }
    const std::shared_ptr<SharedFiles> files;

   private:
    Napi::Value busy_ms(const Napi::CallbackInfo& info) {
        return Napi::Number::New(info.Env(), files->link.busy_ms());
    }
};

SimulatedEngineConfig to_config(const Napi::Value& value) {
    const Fields fields(value, "");
    SimulatedEngineConfig config;
    config.scheduler.parallel = fields.int32("parallel", 1, 256);
    config.scheduler.step_token_budget = fields.int32("stepTokenBudget", 1, kMost);
    config.scheduler.target_itl_ms = fields.int32("targetItlMs", 0, kMost);
    config.scheduler.elastic_target =
        fields.has("elasticTarget") && fields.boolean("elasticTarget");
    config.scheduler.ram_limit = fields.integer("ramBytes", 0, kMostExact);
    config.scheduler.disk_limit = fields.integer("diskBytes", 0, kMostExact);
    config.bytes_per_token = fields.integer("bytesPerToken", 1, kMost);
    CacheShape& shape = config.shape;
    shape.slot_count = fields.int32("slots", 1, 256);
    shape.cells_per_sequence = fields.int32("contextSize", 2, 1 << 22);
    shape.cells_total = std::int64_t{shape.slot_count} * shape.cells_per_sequence;
    shape.max_rows = std::max(config.scheduler.step_token_budget, shape.slot_count);
    shape.micro_batch_rows = fields.int32("microBatch", 1, kMost);
    if (fields.has("disk")) config.files = to_speed(fields.object("disk"));
    if (fields.has("sharedFiles")) {
        const auto shared = fields.get("sharedFiles").As<Napi::Object>();
        config.shared = SharedFilesObject::Unwrap(shared)->files;
    }
    return config;
}

Napi::Array to_passes(Napi::Env env, const std::vector<Pass>& passes) {
    Napi::Array rows = Napi::Array::New(env, passes.size());
    for (std::uint32_t i = 0; const Pass& pass : passes)
        rows.Set(i++, Napi::Number::New(env, static_cast<double>(pass.rows)));
    return rows;
}

// A server's engine, as scripts/simulate/model/engine.d.mts says it.
class SimulatedEngineObject final : public Napi::ObjectWrap<SimulatedEngineObject> {
   public:
    explicit SimulatedEngineObject(const Napi::CallbackInfo& info)
        : ObjectWrap(info), engine_(to_config(info[0])) {}

    static Napi::Function define(Napi::Env env) {
        using Self = SimulatedEngineObject;
        return DefineClass(
            env, "SimulatedEngine",
            {InstanceMethod("submit", &Self::submit), InstanceMethod("step", &Self::step),
             InstanceMethod("took", &Self::took), InstanceMethod("stats", &Self::stats)});
    }

   private:
    Napi::Value submit(const Napi::CallbackInfo& info) {
        const Fields fields(info[0], "");
        SimulatedTurn turn;
        turn.id = static_cast<SequenceId>(fields.integer("id", 1, kMostExact));
        turn.prefix_seed = static_cast<std::uint64_t>(fields.integer("prefixSeed", 0, kMostExact));
        turn.seed = static_cast<std::uint64_t>(fields.integer("seed", 0, kMostExact));
        turn.length = fields.int32("promptTokens", 1, kMost);
        turn.shared = fields.int32("sharedTokens", 0, turn.length);
        turn.generated = fields.int32("generatedTokens", 1, kMost);
        turn.lease_ms = fields.integer("leaseMs", 0, kMostExact);
        unheard_.insert(turn.id);
        engine_.submit(turn);
        return info.Env().Undefined();
    }

    // What was done, and undefined where that is nothing.
    Napi::Value step(const Napi::CallbackInfo& info) {
        const Napi::Env env = info.Env();
        if (!engine_.step(info[0].As<Napi::Number>())) return env.Undefined();
        const EventBatch batch = engine_.take_events();
        const Work work = engine_.take_work();
        Napi::Object object = Napi::Object::New(env);
        object.Set("passes", to_passes(env, work.passes));
        object.Set("events", take_in(env, batch.events));
        set(object, "tokens", std::exchange(tokens_, 0));
        set(object, "decodeAttended", work.decode_attended);
        set(object, "chunkAttended", work.chunk_attended);
        set(object, "movedBytes", work.saved_bytes + work.restored_bytes);
        return object;
    }

    Napi::Value took(const Napi::CallbackInfo& info) {
        engine_.took(info[0].As<Napi::Number>());
        return info.Env().Undefined();
    }

    Napi::Value stats(const Napi::CallbackInfo& info) {
        const EngineStats stats = engine_.stats();
        Napi::Object object = Napi::Object::New(info.Env());
        set(object, "waiting", stats.waiting);
        set(object, "running", stats.running);
        set(object, "promptTokens", stats.prompt_tokens);
        set(object, "cachedTokens", stats.cached_tokens);
        set(object, "prefilledTokens", stats.prefilled_tokens);
        set(object, "generatedTokens", stats.generated_tokens);
        set(object, "slotTokens", stats.cells_used + stats.cells_retained);
        set(object, "ramBytes", stats.ram_bytes);
        set(object, "diskBytes", stats.disk_bytes);
        const SimulatedFiles* files = engine_.files();
        set(object, "fileBytesRead", files ? files->read_bytes() : 0);
        set(object, "fileBytesWritten", files ? files->written_bytes() : 0);
        set(object, "nextFileAt", files ? files->next_outcome_at() : -1);
        return object;
    }

    // Admissions, first tokens and ends; of other tokens only the count.
    Napi::Array take_in(Napi::Env env, const std::vector<Event>& events) {
        Napi::Array list = Napi::Array::New(env);
        const auto add = [&](const char* kind, const Event& event) {
            Napi::Object object = Napi::Object::New(env);
            object.Set("kind", kind);
            set(object, "id", event.id);
            list.Set(list.Length(), object);
            return object;
        };
        for (const Event& event : events) {
            if (event.kind == EventKind::kAdmitted) {
                auto admitted = add("admitted", event);
                set(admitted, "reused", event.reused);
            } else if (event.kind == EventKind::kTokens) {
                tokens_ += static_cast<std::int64_t>(event.tokens.size());
                if (unheard_.erase(event.id) > 0) add("first", event);
            } else if (event.kind == EventKind::kFinished) {
                add("finished", event);
            } else if (event.kind == EventKind::kFailed) {
                add("failed", event).Set("message", event.message);
            }
        }
        return list;
    }

    SimulatedEngine engine_;
    std::unordered_set<SequenceId> unheard_;  // without a token so far
    std::int64_t tokens_ = 0;                 // since the last step
};

}  // namespace

}  // namespace fermata

static Napi::Object initialize_simulation(Napi::Env env, Napi::Object exports) {
    exports.Set("SharedFiles", fermata::SharedFilesObject::define(env));
    exports.Set("SimulatedEngine", fermata::SimulatedEngineObject::define(env));
    return exports;
}

NODE_API_MODULE(fermata_simulation, initialize_simulation)
