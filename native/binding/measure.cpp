#include "binding/measure.h"

#include <memory>
#include <vector>

#include "binding/load_engine.h"
#include "binding/requests.h"
#include "binding/worker.h"
#include "llama/weight_placement.h"

namespace fermata {

namespace {

constexpr std::uint32_t kMaxSizes = 64;
constexpr std::int32_t kMaxContext = 1 << 24;

void set(Napi::Object& object, const char* name, std::uint64_t bytes) {
    object.Set(name, Napi::Number::New(object.Env(), static_cast<double>(bytes)));
}

Napi::Object to_object(Napi::Env env, const MemoryParts& parts) {
    Napi::Object object = Napi::Object::New(env);
    set(object, "weights", parts.weights);
    set(object, "cache", parts.cache);
    set(object, "compute", parts.compute);
    return object;
}

Napi::Object to_object(Napi::Env env, const MemoryNeeds& needs) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("host", to_object(env, needs.host));
    Napi::Array devices = Napi::Array::New(env, needs.devices.size());
    for (std::uint32_t i = 0; i < needs.devices.size(); ++i) {
        Napi::Object device = to_object(env, needs.devices[i].parts);
        device.Set("name", needs.devices[i].name);
        devices.Set(i, device);
    }
    object.Set("devices", devices);
    return object;
}

std::vector<std::int32_t> to_sizes(const Napi::Value& value) {
    if (!value.IsArray() || value.As<Napi::Array>().Length() > kMaxSizes)
        throw invalid_argument("measure takes an array of context sizes.");
    const auto list = value.As<Napi::Array>();
    std::vector<std::int32_t> sizes;
    for (std::uint32_t i = 0; i < list.Length(); ++i) {
        const Napi::Value size = list.Get(i);
        const double number = size.IsNumber() ? size.As<Napi::Number>().DoubleValue() : 0;
        if (!(number >= 2 && number <= kMaxContext))
            throw invalid_argument("measure takes an array of context sizes.");
        sizes.push_back(static_cast<std::int32_t>(number));
    }
    return sizes;
}

}  // namespace

Napi::Value measure(const Napi::CallbackInfo& info) {
    auto options = std::make_shared<LoadOptions>(to_load_options(info[0]));
    auto needs = std::make_shared<std::vector<MemoryNeeds>>();
    return Worker::start(
        info.Env(),
        [options, needs, sizes = to_sizes(info[1])]() -> std::optional<Error> {
            auto measured = measure_engine(*options, sizes);
            if (!measured.ok()) return measured.error();
            *needs = std::move(measured.value());
            return std::nullopt;
        },
        [needs](Napi::Env env) -> Napi::Value {
            Napi::Array list = Napi::Array::New(env, needs->size());
            for (std::uint32_t i = 0; i < needs->size(); ++i)
                list.Set(i, to_object(env, (*needs)[i]));
            return list;
        });
}

Napi::Value list_devices(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const std::vector<Device> found = devices();
    Napi::Array list = Napi::Array::New(env, found.size());
    for (std::uint32_t i = 0; i < found.size(); ++i) {
        Napi::Object device = Napi::Object::New(env);
        device.Set("name", found[i].name);
        device.Set("description", found[i].description);
        set(device, "freeBytes", found[i].free_bytes);
        set(device, "totalBytes", found[i].total_bytes);
        list.Set(i, device);
    }
    return list;
}

}  // namespace fermata
