#include "llama/context_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#if defined(__APPLE__)
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

namespace fermata {

namespace {

// Bytes of `count` values of a row; quantized types hold blocks of 32.
std::uint64_t row_bytes(KvType type, std::uint64_t count) {
    switch (type) {
        case KvType::kF32:
            return count * 4;
        case KvType::kF16:
        case KvType::kBf16:
            return count * 2;
        case KvType::kQ8_0:
            return count / 32 * 34;
        case KvType::kQ4_0:
            return count / 32 * 18;
    }
    return 0;
}

#if defined(__linux__)

std::optional<std::uint64_t> field(const char* path, const std::string& name) {
    std::ifstream file(path);
    std::string word;
    std::uint64_t value = 0;
    while (file >> word) {
        if (word == name && file >> value) return value;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> number(const char* path) {
    std::ifstream file(path);
    std::uint64_t value = 0;
    if (file >> value) return value;
    return std::nullopt;
}

// What the control group (version 2) still allows; its page cache of files can be dropped.
std::optional<std::uint64_t> available_in_group() {
    const auto limit = number("/sys/fs/cgroup/memory.max");
    const auto used = number("/sys/fs/cgroup/memory.current");
    if (!limit || !used) return std::nullopt;
    const std::uint64_t cached = field("/sys/fs/cgroup/memory.stat", "inactive_file").value_or(0);
    const std::uint64_t held = *used - std::min(*used, cached);
    return *limit - std::min(*limit, held);
}

#endif

}  // namespace

ContextMemory estimate_context_memory(const ModelShape& model, std::int32_t vocabulary_size,
                                      const CacheShape& cache, KvType keys, KvType values,
                                      FlashAttention flash_attention) {
    const auto wide = [](std::int64_t value) {
        return static_cast<std::uint64_t>(std::max<std::int64_t>(value, 0));
    };
    const std::uint64_t cell = row_bytes(keys, wide(model.kv_heads) * wide(model.key_length)) +
                               row_bytes(values, wide(model.kv_heads) * wide(model.value_length));
    const std::uint64_t rows = wide(cache.micro_batch_rows);
    const std::uint64_t logits = wide(cache.max_logit_rows) * wide(vocabulary_size) * 4;
    const std::uint64_t activations =
        rows * (8 * wide(model.embedding) + 3 * wide(model.feed_forward)) * 4;
    const std::uint64_t span =
        wide(cache.layout == CacheLayout::kStreams ? cache.cells_per_sequence : cache.cells_total);
    const std::uint64_t mask = rows * span * 4;
    const std::uint64_t scores =
        flash_attention != FlashAttention::kOff ? 0 : rows * span * wide(model.heads) * 4;

    ContextMemory memory;
    memory.cache_bytes = cell * wide(model.layers) * wide(cache.cells_total);
    memory.compute_bytes = 2 * logits + activations + mask + scores;
    const std::uint64_t layers = std::max<std::uint64_t>(wide(model.layers), 1);
    const std::uint64_t host_layers = layers - std::min(layers, wide(model.gpu_layers));
    memory.host_bytes = memory.cache_bytes / layers * host_layers +
                        (host_layers > 0 ? memory.compute_bytes : logits);
    return memory;
}

std::optional<std::uint64_t> available_memory() {
#if defined(__linux__)
    const auto kibibytes = field("/proc/meminfo", "MemAvailable:");
    const auto in_group = available_in_group();
    if (!kibibytes) return in_group;
    return std::min(*kibibytes * 1024, in_group.value_or(*kibibytes * 1024));
#elif defined(__APPLE__)
    vm_statistics64_data_t pages{};
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    std::uint64_t page_size = 0;
    std::size_t size = sizeof(page_size);
    if (sysctlbyname("hw.pagesize", &page_size, &size, nullptr, 0) != 0) return std::nullopt;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages),
                          &count) != KERN_SUCCESS) {
        return std::nullopt;
    }
    const std::uint64_t free_pages =
        std::uint64_t{pages.free_count} + pages.inactive_count + pages.purgeable_count;
    return free_pages * page_size;
#else
    return std::nullopt;
#endif
}

}  // namespace fermata
