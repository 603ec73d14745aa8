# llama.cpp's RPC backend: devices of other machines, and the server of this machine's. It is compiled
# here and not with llama.cpp (GGML_RPC), because its sockets are ours: its own wait forever for a
# peer that is gone (native/llama/rpc_sockets.cpp).

add_library(ggml-rpc STATIC EXCLUDE_FROM_ALL
  ${LLAMA_CPP_DIR}/ggml/src/ggml-rpc/ggml-rpc.cpp ${LLAMA_CPP_DIR}/ggml/src/ggml-rpc/transport.cpp)
target_include_directories(ggml-rpc PRIVATE ${LLAMA_CPP_DIR}/ggml/src)
target_include_directories(ggml-rpc SYSTEM INTERFACE ${LLAMA_CPP_DIR}/ggml/src)
target_compile_definitions(ggml-rpc PRIVATE
  connect=fermata_rpc_connect send=fermata_rpc_send recv=fermata_rpc_recv)
# Checked variants of recv are inline and would take the place of ours.
target_compile_options(ggml-rpc PRIVATE -w -U_FORTIFY_SOURCE)
target_compile_features(ggml-rpc PRIVATE cxx_std_17)
target_link_libraries(ggml-rpc PUBLIC ggml)
