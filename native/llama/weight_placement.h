// Where the weights go and how they are read, by the names that llama-server has for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

struct llama_model_params;

namespace fermata {

// kRow and kTensor share each layer among devices.
enum class SplitMode : std::uint8_t { kAuto, kNone, kLayer, kRow, kTensor };

struct WeightPlacement {
    std::vector<std::string> devices;  // by name; empty: all, "none" alone: no device
    SplitMode split_mode = SplitMode::kAuto;
    std::int32_t main_gpu = 0;        // index of a device
    std::vector<float> tensor_split;  // shares of the devices; empty: by their free memory
    // Regular expression of tensors' names, name of a buffer type; the first that matches counts.
    std::vector<std::pair<std::string, std::string>> overrides;
    bool mmap = true;
    bool mlock = false;
};

// Graphics processors and the like, as `--device` takes them; without the processor.
struct Device {
    std::string name;
    std::string description;
    std::uint64_t free_bytes = 0;
    std::uint64_t total_bytes = 0;
};
std::vector<Device> devices();

// A placement in llama.cpp's terms. It must outlive the load that it was applied to.
class WeightPlacementParams {
   public:
    struct Arrays;

    // Errors: invalid_argument; the message lists what there is.
    static Result<std::shared_ptr<const WeightPlacementParams>> of(
        const WeightPlacement& placement);
    void apply(llama_model_params& params) const;

   private:
    std::shared_ptr<Arrays> arrays_;
};

}  // namespace fermata
