#include "llama/state_fingerprint.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/checksum.h"
#include "llama.h"

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

// The file and, of a split model, the parts behind it.
std::vector<std::string> files_of(const std::string& path, const Model& model) {
    std::vector<std::string> files{path};
    std::array<char, 16> number{};
    llama_model_meta_val_str(model.handle(), "split.count", number.data(), number.size());
    const int count = std::atoi(number.data());
    std::array<char, 4096> prefix{}, part{};
    if (llama_split_prefix(prefix.data(), prefix.size(), path.c_str(), 0, count) == 0) return files;
    for (int i = 1; i < count; ++i) {
        llama_split_path(part.data(), part.size(), prefix.data(), i, count);
        files.emplace_back(part.data());
    }
    return files;
}

}  // namespace

std::uint64_t state_fingerprint(const std::string& model_path, const Model& model,
                                const CacheShape& shape, const BackendOptions& options) {
    std::ostringstream text;
    for (const std::string& file : files_of(model_path, model))
        describe_file(file, text);
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
