#include "llama/state_fingerprint.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/checksum.h"

namespace fermata {

namespace {

constexpr std::int64_t kPiece = 64 << 10;
constexpr std::int64_t kPieces = 64;
constexpr std::int64_t kHead = 4 << 20;  // metadata, mostly

void describe_file(const std::string& path, std::ostream& text) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return;
    const auto size = static_cast<std::int64_t>(file.tellg());
    text << size;
    std::vector<char> bytes;
    const auto describe = [&](std::int64_t at, std::int64_t count) {
        bytes.assign(static_cast<std::size_t>(std::min(count, size - at)), 0);
        file.seekg(at);
        file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        text << '|' << checksum_of(std::as_bytes(std::span(bytes)));
    };
    describe(0, kHead);
    for (std::int64_t piece = 0; piece < kPieces && size > kPiece; ++piece)
        describe((size - kPiece) / kPieces * piece, kPiece);
}

}  // namespace

std::uint64_t state_fingerprint(const std::string& model_path, const Model& model,
                                const CacheShape& shape, const BackendOptions& options) {
    std::ostringstream text;
    describe_file(model_path, text);
    const ModelInfo& info = model.info();
    text << '|' << info.description << '|' << info.size_bytes << '|' << info.parameter_count << '|'
         << system_info() << '|' << static_cast<int>(shape.layout) << '|' << shape.slot_count << '|'
         << shape.cells_per_sequence << '|' << shape.cells_total << '|' << shape.fixed_chunk << '|'
         << static_cast<int>(options.keys) << '|' << static_cast<int>(options.values) << '|'
         << static_cast<int>(options.flash_attention) << '|' << model.shape().gpu_layers << '|'
         << options.keeps_states;
    const RopeOptions& rope = options.rope;
    text << '|' << static_cast<int>(rope.scaling) << '|' << rope.freq_base << '|' << rope.freq_scale
         << '|' << rope.yarn_orig_ctx << '|' << rope.yarn_ext_factor << '|' << rope.yarn_attn_factor
         << '|' << rope.yarn_beta_fast << '|' << rope.yarn_beta_slow;
    const std::string described = text.str();
    return checksum_of(std::as_bytes(std::span(described)));
}

}  // namespace fermata
