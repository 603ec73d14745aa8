#include "binding/requests.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "binding/fields.h"
#include "binding/grammar_object.h"

namespace fermata {

namespace {

constexpr std::int32_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxId = (std::int64_t{1} << 53) - 1;
constexpr std::int32_t kMaxContext = 1 << 24;
constexpr std::size_t kMaxMarks = 64;
constexpr std::uint32_t kMaxStopStrings = 256;
constexpr std::uint32_t kMaxSequenceBreakers = 16;
constexpr std::int32_t kMaxDevices = 64;
constexpr std::int32_t kMaxPort = 65535;
constexpr double kMaxFactor = 1e12;
// An event of one token has that many pairs.
constexpr std::int32_t kMaxTopLogprobs = 1000;

KvType to_kv_type(const Fields& fields, const char* name) {
    return fields.choice<KvType>(name, {{"f32", KvType::kF32},
                                        {"f16", KvType::kF16},
                                        {"bf16", KvType::kBf16},
                                        {"q8_0", KvType::kQ8_0},
                                        {"q4_0", KvType::kQ4_0},
                                        {"q4_1", KvType::kQ4_1},
                                        {"q5_0", KvType::kQ5_0},
                                        {"q5_1", KvType::kQ5_1},
                                        {"iq4_nl", KvType::kIq4Nl}});
}

// llama.cpp's own options: each may be absent.
void read_llama(const Fields& fields, WeightPlacement& placement, RopeOptions& rope) {
    if (fields.has("devices")) placement.devices = fields.texts("devices", kMaxDevices);
    if (fields.has("splitMode"))
        placement.split_mode =
            fields.choice<SplitMode>("splitMode", {{"none", SplitMode::kNone},
                                                   {"layer", SplitMode::kLayer},
                                                   {"row", SplitMode::kRow},
                                                   {"tensor", SplitMode::kTensor}});
    fields.read("mainGpu", placement.main_gpu, 0, kMaxDevices);
    if (fields.has("tensorSplit")) {
        const Napi::Array shares = fields.array("tensorSplit");
        for (std::uint32_t i = 0; i < shares.Length(); ++i) {
            const Napi::Value share = shares.Get(i);
            if (!share.IsNumber()) throw fields.refused("tensorSplit", "must hold numbers");
            placement.tensor_split.push_back(share.As<Napi::Number>().FloatValue());
        }
    }
    if (fields.has("overrideTensor")) {
        const Napi::Array pairs = fields.array("overrideTensor");
        for (std::uint32_t i = 0; i < pairs.Length(); ++i) {
            const Fields pair(pairs.Get(i), "overrideTensor");
            placement.overrides.emplace_back(pair.text("pattern"), pair.text("buffer"));
        }
    }
    fields.read("mmap", placement.mmap);
    fields.read("mlock", placement.mlock);
    if (fields.has("ropeScaling"))
        rope.scaling = fields.choice<RopeScaling>("ropeScaling", {{"none", RopeScaling::kNone},
                                                                  {"linear", RopeScaling::kLinear},
                                                                  {"yarn", RopeScaling::kYarn}});
    fields.read("ropeFreqBase", rope.freq_base, 0, kMaxFactor);
    fields.read("ropeFreqScale", rope.freq_scale, 0, kMaxFactor);
    fields.read("yarnOrigCtx", rope.yarn_orig_ctx, 0, kMaxContext);
    fields.read("yarnExtFactor", rope.yarn_ext_factor, -1, kMaxFactor);
    fields.read("yarnAttnFactor", rope.yarn_attn_factor, -1, kMaxFactor);
    fields.read("yarnBetaFast", rope.yarn_beta_fast, -1, kMaxFactor);
    fields.read("yarnBetaSlow", rope.yarn_beta_slow, -1, kMaxFactor);
}

std::pair<Token, float> to_bias(const Fields& fields, const Napi::Value& value,
                                std::int32_t vocabulary_size) {
    if (!value.IsArray()) throw fields.refused("logitBias", "must hold [token, bias] pairs");
    const auto pair = value.As<Napi::Array>();
    const Napi::Value token = pair.Get(0u);
    const Napi::Value bias = pair.Get(1u);
    if (!token.IsNumber() || !bias.IsNumber()) {
        throw fields.refused("logitBias", "must hold [token, bias] pairs of numbers");
    }
    const double id = token.As<Napi::Number>().DoubleValue();
    const float amount = bias.As<Napi::Number>().FloatValue();
    if (!(id >= 0 && id < vocabulary_size) || id != std::floor(id)) {
        throw fields.refused("logitBias", "names no token of this model");
    }
    if (!std::isfinite(amount)) throw fields.refused("logitBias", "must hold finite numbers");
    return {static_cast<Token>(id), amount};
}

DryParams to_dry(const Fields& fields) {
    DryParams dry;
    dry.multiplier = static_cast<float>(fields.number("multiplier", 0, 100));
    dry.base = static_cast<float>(fields.number("base", 1, 100));
    dry.allowed_length = fields.int32("allowedLength", 0, kMaxContext);
    dry.penalty_last_n = fields.int32("penaltyLastN", 0, kMaxContext);
    dry.sequence_breakers = fields.texts("sequenceBreakers", kMaxSequenceBreakers);
    return dry;
}

TokenRules to_rules(const Fields& fields, std::int32_t vocabulary_size) {
    TokenRules rules;
    if (fields.has("allowed")) rules.allowed = fields.tokens("allowed", vocabulary_size);
    if (fields.has("stopTokens")) rules.stop_tokens = fields.tokens("stopTokens", vocabulary_size);
    if (fields.has("banned")) {
        const Napi::Array banned = fields.array("banned");
        for (std::uint32_t i = 0; i < banned.Length(); ++i) {
            rules.banned.push_back(to_tokens(banned.Get(i), "banned", vocabulary_size));
            if (rules.banned.back().empty()) throw fields.refused("banned", "must hold tokens");
        }
    }
    fields.read("minTokens", rules.min_tokens, 0, kMaxInt32);
    fields.read("keepsStop", rules.keeps_stop);
    return rules;
}

// Below it no token but the likeliest has a chance, and a logit over it may be infinite. vLLM's
// number.
constexpr float kCoolest = 1e-5f;

SamplingParams to_sampling(const Fields& fields, std::int32_t vocabulary_size) {
    SamplingParams sampling;
    // Zero is excluded where the range is open; the smallest float is as good as none.
    constexpr double kAboveZero = std::numeric_limits<float>::min();
    fields.read("temperature", sampling.temperature, 0, 100);
    if (sampling.temperature < kCoolest) sampling.temperature = 0.0f;
    fields.read("topK", sampling.top_k, 0, kMaxInt32);
    fields.read("topP", sampling.top_p, kAboveZero, 1);
    fields.read("minP", sampling.min_p, 0, 1);
    fields.read("typicalP", sampling.typical_p, kAboveZero, 1);
    fields.read("repeatPenalty", sampling.repeat_penalty, kAboveZero, 100);
    fields.read("frequencyPenalty", sampling.frequency_penalty, -100, 100);
    fields.read("presencePenalty", sampling.presence_penalty, -100, 100);
    fields.read("penaltyLastN", sampling.penalty_last_n, 0, kMaxContext);
    fields.read("topNSigma", sampling.top_n_sigma, 0, 1000);
    fields.read("xtcProbability", sampling.xtc_probability, 0, 1);
    fields.read("xtcThreshold", sampling.xtc_threshold, 0, 1);
    fields.read("dynatempRange", sampling.dynatemp_range, 0, 100);
    fields.read("dynatempExponent", sampling.dynatemp_exponent, 0, 100);
    fields.read("mirostat", sampling.mirostat, 0, 2);
    fields.read("mirostatTau", sampling.mirostat_tau, 0, 100);
    fields.read("mirostatEta", sampling.mirostat_eta, 0, 1);
    fields.read("minKeep", sampling.min_keep, 1, kMaxContext);
    fields.read("ignoresEnd", sampling.ignores_end);
    fields.read("samplesAfterScript", sampling.samples_after_script);
    fields.read("goesOn", sampling.goes_on);
    if (fields.has("dry")) sampling.dry = to_dry(fields.object("dry"));
    if (fields.has("rules")) sampling.rules = to_rules(fields.object("rules"), vocabulary_size);
    if (fields.has("seed"))
        sampling.seed = static_cast<std::uint32_t>(
            fields.integer("seed", 0, std::numeric_limits<std::uint32_t>::max()));
    if (fields.has("logitBias")) {
        const Napi::Array bias = fields.array("logitBias");
        for (std::uint32_t i = 0; i < bias.Length(); ++i) {
            sampling.logit_bias.push_back(to_bias(fields, bias.Get(i), vocabulary_size));
        }
    }
    if (fields.has("script")) sampling.script = fields.tokens("script", vocabulary_size);
    return sampling;
}

PauseTriggers to_pause(const Fields& fields) {
    using HoldAtEnd = PauseTriggers::HoldAtEnd;
    PauseTriggers pause;
    pause.call_open = fields.text("callOpen");
    pause.call_close = fields.text("callClose");
    pause.hold_at_end =
        fields.choice<HoldAtEnd>("holdAtEnd", {{"never", HoldAtEnd::kNever},
                                               {"after_call", HoldAtEnd::kAfterCall},
                                               {"always", HoldAtEnd::kAlways}});
    pause.hold_at_text_after_call = fields.boolean("holdAtTextAfterCall");
    if (pause.call_open.empty() != pause.call_close.empty()) {
        throw fields.refused("callClose", "and callOpen must be both empty or neither");
    }
    return pause;
}

// Lengths of `tokens`, each longer than the one before.
std::vector<std::int32_t> to_marks(const Fields& fields, const std::vector<Token>& tokens) {
    if (!fields.has("marks")) return {};
    std::vector<std::int32_t> marks =
        fields.tokens("marks", static_cast<std::int32_t>(tokens.size()) + 1);
    if (marks.size() > kMaxMarks) throw fields.refused("marks", "has too many lengths");
    const bool rises = std::ranges::is_sorted(marks, std::ranges::less_equal());
    if (!rises || (!marks.empty() && marks.front() < 1))
        throw fields.refused("marks", "must be ascending lengths of at least 1");
    return marks;
}

SequenceId id_of(const Fields& fields) {
    return static_cast<SequenceId>(fields.integer("id", 1, kMaxId));
}

}  // namespace

LoadOptions to_load_options(const Napi::Value& value) {
    const Fields fields(value, "");
    LoadOptions options;
    options.model_path = fields.text("modelPath");
    options.gpu_layers = fields.int32("gpuLayers", -1, kMaxInt32);
    const std::int32_t parallel = fields.int32("parallel", 1, 256);
    BackendOptions& backend = options.backend;
    if (fields.has("llama")) read_llama(fields.object("llama"), options.placement, backend.rope);
    backend.layout = fields.choice<CacheLayout>(
        "kvLayout", {{"streams", CacheLayout::kStreams}, {"unified", CacheLayout::kUnified}});
    backend.slot_count = parallel + fields.int32("retainedSlots", 0, 256 - parallel);
    backend.cells_per_sequence = fields.int32("contextSize", 2, kMaxContext);
    backend.cells_total = fields.integer("cellsTotal", 1, kMaxInt32);
    backend.max_rows = fields.int32("stepTokenBudget", parallel, 1 << 16);
    backend.micro_batch_rows = fields.int32("microBatch", 1, 1 << 16);
    backend.threads = fields.int32("threads", 1, 512);
    if (fields.has("adaptThreads")) backend.adapt_threads = fields.boolean("adaptThreads");
    backend.flash_attention =
        fields.choice<FlashAttention>("flashAttention", {{"off", FlashAttention::kOff},
                                                         {"on", FlashAttention::kOn},
                                                         {"auto", FlashAttention::kAuto}});
    if (fields.has("deterministic")) backend.deterministic = fields.boolean("deterministic");
    backend.keys = to_kv_type(fields, "cacheTypeK");
    backend.values = to_kv_type(fields, "cacheTypeV");
    options.loop.scheduler.parallel = parallel;
    options.loop.scheduler.step_token_budget = backend.max_rows;
    options.loop.scheduler.hold_lease_ms = fields.integer("holdLeaseMs", 1, kMaxInt32);
    options.loop.scheduler.ram_limit = fields.integer("cacheRamBytes", 0, kMaxId);
    if (fields.has("cacheDiskBytes")) {
        options.loop.scheduler.disk_limit = fields.integer("cacheDiskBytes", 0, kMaxId);
        options.cache_dir = fields.text("cacheDir");
    }
    if (fields.has("cacheRemote")) {
        const Fields remote = fields.object("cacheRemote");
        options.cache_remote = RedisAddress{.host = remote.text("host"),
                                            .port = remote.int32("port", 1, kMaxPort),
                                            .user = remote.text("user"),
                                            .password = remote.text("password"),
                                            .database = remote.int32("database", 0, kMaxInt32)};
    }
    if (fields.has("targetItlMs"))
        options.loop.scheduler.target_itl_ms = fields.int32("targetItlMs", 0, kMaxInt32);
    if (fields.has("elasticTarget"))
        options.loop.scheduler.elastic_target = fields.boolean("elasticTarget");
    backend.forks = options.loop.scheduler.ram_limit > 0;
    if (fields.has("draftLimit"))
        options.loop.scheduler.draft_limit = fields.int32("draftLimit", 0, kMaxInt32);
    backend.undo_rows = options.loop.scheduler.draft_limit;
    if (fields.has("draftsAnywhere"))
        options.loop.scheduler.drafts_may_change_bits = backend.undo_states =
            fields.boolean("draftsAnywhere");
    if (fields.has("draftModel")) {
        const Fields draft = fields.object("draftModel");
        options.draft_model =
            DraftModelOptions{.model_path = draft.text("modelPath"),
                              .gpu_layers = draft.int32("gpuLayers", -1, kMaxInt32),
                              .context_size = draft.int32("contextSize", 2, kMaxContext)};
    }
    if (fields.has("draftMtp"))
        options.draft_mtp = backend.keeps_states = fields.boolean("draftMtp");
    options.loop.max_queue = fields.int32("maxQueue", 0, kMaxInt32);
    options.loop.audit = fields.boolean("audit");
    return options;
}

SubmitRequest to_submit(const Napi::Value& value, std::int32_t vocabulary_size,
                        std::int32_t cells_per_sequence, const void* engine) {
    const Fields fields(value, "");
    SubmitRequest request;
    request.id = id_of(fields);
    request.prompt = fields.tokens("prompt", vocabulary_size);
    if (request.prompt.empty() ||
        request.prompt.size() >= static_cast<std::size_t>(cells_per_sequence)) {
        throw fields.refused("prompt", "must have 1 to " + std::to_string(cells_per_sequence - 1) +
                                           " tokens, not " + std::to_string(request.prompt.size()));
    }
    if (fields.has("begun")) request.begun = fields.tokens("begun", vocabulary_size);
    if (fields.has("sampling"))
        request.sampling = to_sampling(fields.object("sampling"), vocabulary_size);
    fields.read("maxTokens", request.limits.max_tokens, 1, kMaxInt32);
    request.limits.window = fields.int32("window", 1, kMaxInt32);
    if (fields.has("pause")) request.pause = to_pause(fields.object("pause"));
    if (fields.has("stop")) request.stop = fields.texts("stop", kMaxStopStrings);
    fields.read("topLogprobs", request.top_logprobs, 0, kMaxTopLogprobs);
    fields.read("postSampling", request.post_sampling);
    fields.read("promptLogprobs", request.prompt_logprobs, 0, kMaxTopLogprobs);
    request.marks = to_marks(fields, request.prompt);
    fields.read("shared", request.shared, 0, static_cast<std::int32_t>(request.prompt.size()));
    request.retain = fields.boolean("retain");
    if (fields.has("salt")) request.salt = static_cast<Salt>(fields.integer("salt", 0, kMaxId));
    if (fields.has("leaseMs")) request.lease_ms = fields.integer("leaseMs", 0, kMaxInt32);
    if (fields.has("grammar")) request.grammar = to_grammar(fields.get("grammar"), engine);
    fields.read("forcedTokens", request.forced_tokens);
    fields.read("closeAtLimit", request.close_at_limit);
    if (fields.has("spelledTokens"))
        request.spelled_tokens = fields.tokens("spelledTokens", vocabulary_size);
    return request;
}

ExtendRequest to_extend(const Napi::Value& value, std::int32_t vocabulary_size,
                        std::int32_t cells_per_sequence) {
    const Fields fields(value, "");
    ExtendRequest request;
    request.id = id_of(fields);
    request.tokens = fields.tokens("tokens", vocabulary_size);
    if (request.tokens.empty() ||
        request.tokens.size() >= static_cast<std::size_t>(cells_per_sequence)) {
        throw fields.refused("tokens", "must have 1 to " + std::to_string(cells_per_sequence - 1) +
                                           " tokens, not " + std::to_string(request.tokens.size()));
    }
    request.keep_pending = fields.boolean("keepPending");
    return request;
}

ResumeRequest to_resume(const Napi::Value& value, std::int32_t vocabulary_size,
                        const void* engine) {
    const Fields fields(value, "");
    ResumeRequest request;
    request.id = id_of(fields);
    request.tokens = fields.tokens("tokens", vocabulary_size);
    if (request.tokens.empty()) throw fields.refused("tokens", "must not be empty");
    request.marks = to_marks(fields, request.tokens);
    request.keep_pending = fields.boolean("keepPending");
    fields.read("maxTokens", request.max_tokens, 1, kMaxInt32);
    if (fields.has("grammar")) {
        const Napi::Value grammar = fields.get("grammar");
        request.grammar = grammar.IsNull() ? nullptr : to_grammar(grammar, engine);
    }
    return request;
}

SequenceId to_sequence_id(const Napi::Value& value) {
    const double id = value.IsNumber() ? value.As<Napi::Number>().DoubleValue() : -1;
    if (!(id >= 1 && id <= static_cast<double>(kMaxId)) || id != std::floor(id)) {
        throw invalid_argument("The id must be a whole number of at least 1.");
    }
    return static_cast<SequenceId>(id);
}

}  // namespace fermata
