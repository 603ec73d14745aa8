#include "llama/mtp_layers.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "llama-model.h"
#include "llama.h"

namespace fermata {

namespace {

// Those for which llama.cpp v0.5.0 has a graph of these layers over a cache that can be cut, and
// tells what it starts from. It ends the process where others are asked for one.
constexpr std::array<std::string_view, 13> kWithGraph = {
    "bailingmoe3", "cohere2moe",     "deepseek2", "deepseek32", "glm-dsa",   "glm4moe", "hy_v3",
    "mimo2",       "nemotron_h_moe", "qwen35",    "qwen35moe",  "qwen3next", "step35"};
// Of these, where there may be several layers: the first of them drafts.
constexpr std::array<std::string_view, 3> kWithSeveral = {"hy_v3", "mimo2", "step35"};
// Whose graphs drop the rows without logits before they come to a state.
constexpr std::array<std::string_view, 3> kOfLogits = {"mimo2", "qwen3next", "step35"};

}  // namespace

std::string mtp_problem(const Model& model) {
    const std::int32_t layers = llama_model_n_layer_nextn(model.handle());
    const std::string first =
        "blk." + std::to_string(llama_model_n_layer(model.handle())) + ".nextn.eh_proj.weight";
    if (layers == 0 || model.handle()->get_tensor(first.c_str()) == nullptr)
        return "its file has no MTP layers";
    const std::string& kind = model.info().architecture;
    const bool one = layers == 1 || std::ranges::find(kWithSeveral, kind) != kWithSeveral.end();
    if (!one) return "llama.cpp runs one MTP layer of a " + kind + " model, and it has several";
    if (std::ranges::find(kWithGraph, kind) == kWithGraph.end())
        return "llama.cpp has no graph for the MTP layers of a " + kind + " model";
    // llama.cpp takes them for the same.
    if (llama_model_n_embd_out(model.handle()) != llama_model_n_embd(model.handle()))
        return "its states have another width than its embeddings";
    return {};
}

bool mtp_states_of_logits(const Model& model) {
    return std::ranges::find(kOfLogits, model.info().architecture) != kOfLogits.end();
}

}  // namespace fermata
