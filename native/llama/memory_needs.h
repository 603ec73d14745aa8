// How much memory a model and its cache take, as llama.cpp counts it, before anything is allocated:
// memory is committed lazily, so what does not fit is loaded all the same and the process is killed
// later.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct llama_context;

namespace fermata {

// Bytes.
struct MemoryParts {
    std::uint64_t weights = 0;
    std::uint64_t cache = 0;    // keys and values of all cells, states of recurrent layers
    std::uint64_t compute = 0;  // activations, attention scores
};

struct MemoryNeeds {
    struct Device {
        std::string name;
        MemoryParts parts;
    };
    MemoryParts host;
    std::vector<Device> devices;  // that may have layers

    // What another model takes beside this one.
    void add(const MemoryNeeds& other);
};

// Of a context, be it of a model that only measures.
MemoryNeeds memory_needs(const llama_context* context);

}  // namespace fermata
