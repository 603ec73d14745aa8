#include "llama/weight_placement.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "ggml-backend.h"
#include "llama.h"
#include "llama/log.h"

namespace fermata {

struct WeightPlacementParams::Arrays {
    WeightPlacement placement;
    std::vector<ggml_backend_dev_t> devices;  // ends with null, if any
    std::vector<llama_model_tensor_buft_override> overrides;
    std::vector<float> split;
};

namespace {

// ggml takes the processor and its accelerators (BLAS) for devices too; layers go to none of them.
bool takes_layers(ggml_backend_dev_t device) {
    const auto type = ggml_backend_dev_type(device);
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

std::vector<ggml_backend_dev_t> layer_devices() {
    std::vector<ggml_backend_dev_t> found;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        if (takes_layers(ggml_backend_dev_get(i))) found.push_back(ggml_backend_dev_get(i));
    }
    return found;
}

std::map<std::string, ggml_backend_buffer_type_t> buffer_types() {
    std::map<std::string, ggml_backend_buffer_type_t> types;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        if (const auto type = ggml_backend_dev_buffer_type(ggml_backend_dev_get(i)))
            types[ggml_backend_buft_name(type)] = type;
    }
    return types;
}

Error refused(const std::string& what) {
    return {ErrorCode::kInvalidArgument, what};
}

std::string listed(const std::vector<std::string>& names, const std::string& none) {
    std::string text;
    for (const std::string& name : names)
        text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? none : text;
}

std::string fault_of_devices(WeightPlacementParams::Arrays& arrays) {
    const WeightPlacement& wanted = arrays.placement;
    const auto present = layer_devices();
    std::vector<std::string> names{"none"};
    for (const auto device : present)
        names.emplace_back(ggml_backend_dev_name(device));
    if (!wanted.devices.empty()) {
        const bool is_none = wanted.devices.size() == 1 && wanted.devices[0] == "none";
        for (const std::string& name : wanted.devices) {
            const auto found = std::ranges::find(names, name);
            if (found == names.end() || (name == "none" && !is_none)) {
                return "device: there is no " + name + ". This build has: " + listed(names, "") +
                       ".";
            }
            if (!is_none) arrays.devices.push_back(present[found - names.begin() - 1]);
        }
        arrays.devices.push_back(nullptr);
    }
    const std::size_t used = wanted.devices.empty() ? present.size() : arrays.devices.size() - 1;
    if (wanted.main_gpu > 0 && static_cast<std::size_t>(wanted.main_gpu) >= used) {
        return "mainGpu: there is no device " + std::to_string(wanted.main_gpu) + "; there are " +
               std::to_string(used) + ", counted from 0.";
    }
    if (wanted.tensor_split.size() > std::max<std::size_t>(used, 1)) {
        return "tensorSplit: has " + std::to_string(wanted.tensor_split.size()) + " shares for " +
               std::to_string(used) + " devices.";
    }
    if (std::ranges::any_of(wanted.tensor_split,
                            [](float share) { return !(share >= 0) || !std::isfinite(share); }))
        return "tensorSplit: a share must be 0 or more.";
    if ((wanted.split_mode == SplitMode::kRow || wanted.split_mode == SplitMode::kTensor) &&
        used < 2)
        return "splitMode: row and tensor need two devices or more; there are " +
               std::to_string(used) + ". Possible: none, layer.";
    return {};
}

std::string fault_of_overrides(WeightPlacementParams::Arrays& arrays) {
    const auto types = buffer_types();
    for (const auto& [pattern, buffer] : arrays.placement.overrides) {
        try {
            const std::regex expression(pattern);
        } catch (const std::regex_error&) {
            return "overrideTensor: \"" + pattern + "\" is not a regular expression.";
        }
        const auto type = types.find(buffer);
        if (type == types.end()) {
            std::vector<std::string> names;
            for (const auto& [name, ignored] : types)
                names.push_back(name);
            return "overrideTensor: there is no buffer type " + buffer +
                   ". This build has: " + listed(names, "none") + ".";
        }
        arrays.overrides.push_back({pattern.c_str(), type->second});
    }
    if (!arrays.overrides.empty()) arrays.overrides.push_back({nullptr, nullptr});
    return {};
}

}  // namespace

std::vector<Device> devices() {
    initialize_llama();
    std::vector<Device> found;
    for (const auto device : layer_devices()) {
        std::size_t free = 0;
        std::size_t total = 0;
        ggml_backend_dev_memory(device, &free, &total);
        found.push_back(
            {ggml_backend_dev_name(device), ggml_backend_dev_description(device), free, total});
    }
    return found;
}

Result<std::shared_ptr<const WeightPlacementParams>> WeightPlacementParams::of(
    const WeightPlacement& placement) {
    initialize_llama();
    auto made = std::make_shared<WeightPlacementParams>();
    made->arrays_ = std::make_shared<Arrays>();
    Arrays& arrays = *made->arrays_;
    arrays.placement = placement;
    if (const std::string fault = fault_of_devices(arrays); !fault.empty()) return refused(fault);
    if (const std::string fault = fault_of_overrides(arrays); !fault.empty()) return refused(fault);
    if (!placement.tensor_split.empty()) {
        arrays.split = placement.tensor_split;
        arrays.split.resize(llama_max_devices(), 0.0f);
    }
    return std::shared_ptr<const WeightPlacementParams>(std::move(made));
}

void WeightPlacementParams::apply(llama_model_params& params) const {
    const WeightPlacement& placement = arrays_->placement;
    if (!arrays_->devices.empty()) params.devices = arrays_->devices.data();
    if (!arrays_->overrides.empty()) params.tensor_buft_overrides = arrays_->overrides.data();
    if (!arrays_->split.empty()) params.tensor_split = arrays_->split.data();
    params.main_gpu = placement.main_gpu;
    switch (placement.split_mode) {
        case SplitMode::kAuto:
            break;
        case SplitMode::kNone:
            params.split_mode = LLAMA_SPLIT_MODE_NONE;
            break;
        case SplitMode::kLayer:
            params.split_mode = LLAMA_SPLIT_MODE_LAYER;
            break;
        case SplitMode::kRow:
            params.split_mode = LLAMA_SPLIT_MODE_ROW;
            break;
        case SplitMode::kTensor:
            params.split_mode = LLAMA_SPLIT_MODE_TENSOR;
            break;
    }
    if (placement.mlock)
        params.load_mode = placement.mmap ? LLAMA_LOAD_MODE_MMAP_MLOCK : LLAMA_LOAD_MODE_MLOCK;
    else if (!placement.mmap)
        params.load_mode = LLAMA_LOAD_MODE_NONE;
}

}  // namespace fermata
