#include "simulation/simulated_backend.h"

#include <utility>

#include "core/samplers.h"

namespace fermata {

namespace {

// Ids of tokens are 1 .. kVocabulary; 0 ends a generation.
constexpr std::uint64_t kVocabulary = 150'000;

std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

}  // namespace

std::vector<Token> tokens_of(std::uint64_t seed, std::int32_t begin, std::int32_t end) {
    std::vector<Token> tokens;
    tokens.reserve(static_cast<std::size_t>(end - begin));
    for (std::int32_t position = begin; position < end; ++position) {
        const std::uint64_t hash =
            mixed(seed * 0x9E3779B97F4A7C15u + mixed(static_cast<std::uint64_t>(position) + 1));
        tokens.push_back(static_cast<Token>(1 + hash % kVocabulary));
    }
    return tokens;
}

SimulatedBackend::SimulatedBackend(CacheShape shape, std::int64_t bytes_per_token)
    : shape_(shape),
      bytes_per_token_(bytes_per_token),
      lengths_(static_cast<std::size_t>(shape.slot_count)) {}

Work SimulatedBackend::take_work() {
    return std::exchange(work_, {});
}

DecodeStatus SimulatedBackend::decode(std::span<const BatchRow> rows) {
    std::vector<SlotRows> batch;
    for (const BatchRow& row : rows) {
        if (batch.empty() || batch.back().slot != row.slot) batch.push_back({row.slot, 0});
        ++batch.back().rows;
        length(row.slot) = row.position + 1;
    }
    for (std::size_t row = 0; const SlotRows& share : batch) {
        std::int64_t& attended = share.rows == 1 ? work_.decode_attended : work_.chunk_attended;
        for (std::int64_t i = 0; i < share.rows; ++i)
            attended += rows[row++].position + 1;
    }
    for (const Pass& pass : split_into_passes(std::move(batch), shape_))
        work_.passes.push_back(pass);
    return DecodeStatus::kOk;
}

// What is sampled stands in the sampler's script.
std::span<const float> SimulatedBackend::logits(std::size_t /*row*/) {
    static const std::vector<float> kZeros(kVocabulary + 1);
    return kZeros;
}

// Through host memory, as LlamaBackend does it in streams.
bool SimulatedBackend::copy_prefix(SlotId from, SlotId to, std::int32_t length_of_copy) {
    const std::int64_t bytes = length(from) * bytes_per_token_;
    work_.saved_bytes += bytes;
    work_.restored_bytes += bytes;
    length(to) = length_of_copy;
    return true;
}

bool SimulatedBackend::truncate(SlotId slot, std::int32_t kept) {
    length(slot) = kept;
    return true;
}

std::size_t SimulatedBackend::saved_size(SlotId slot) {
    return static_cast<std::size_t>(length(slot) * bytes_per_token_);
}

// Real bytes of a thousand replicas would need more memory mappings than a process may have.
SavedCells SimulatedBackend::save(SlotId slot) {
    return save_beside(slot, {}, 0);
}

// Equal tokens have equal bytes. To compare them takes about as long as to copy them.
SavedCells SimulatedBackend::save_beside(SlotId slot, const SavedCells& like, std::int32_t common) {
    work_.saved_bytes += static_cast<std::int64_t>(saved_size(slot));
    const PagedSize size{.position = static_cast<std::size_t>(bytes_per_token_),
                         .length = length(slot)};
    return SavedCells::counted(size, like, common);
}

bool SimulatedBackend::restore(SlotId slot, const SavedCells& saved) {
    work_.restored_bytes += static_cast<std::int64_t>(saved.size());
    length(slot) = saved.length();
    return true;
}

std::unique_ptr<Sampler> SimulatedBackend::make_sampler(const SamplingParams& params) {
    return std::make_unique<ScriptedSampler>(*params.script, end_token());
}

}  // namespace fermata
