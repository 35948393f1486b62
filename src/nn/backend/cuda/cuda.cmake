# The GPU's library layer, added to weir_nn; src/nn/CMakeLists.txt includes this behind weir_library(nn).
set(cuda_library library.c gpu_modules.c gpu_cuda.c gpu_group.c gpu_conv.c conv_choices.c conv_graph.c)
list(TRANSFORM cuda_library PREPEND backend/cuda/)
target_sources(weir_nn PRIVATE ${cuda_library})

# The kernels as texts, which NVRTC compiles where the GPU is (gpu_modules.c has the same list).
set(cuda_folder ${CMAKE_CURRENT_SOURCE_DIR}/backend/cuda)
weir_embed(weir_nn ${cuda_folder}/kernels.h gpu_kernels_h)
foreach(name common elementwise norm pool conv depthwise loss scale update)
  weir_embed(weir_nn ${cuda_folder}/kernels/${name}.cu gpu_kernels_${name})
endforeach()

# The emulated GPU, for tests; as a back-end too, for those of other domains (TEST_DEPENDS nn_emulated).
add_library(weir_nn_emulated STATIC EXCLUDE_FROM_ALL
  backend/cuda/emulated/emulated.c backend/cuda/emulated/emulated_group.c backend/cuda/emulated/emulated_f32.c backend/cuda/emulated/emulated_bf16.c
  backend/cuda/emulated/emulated_f16.c backend/cuda/emulated/emulated_backend.c)
target_include_directories(weir_nn_emulated PRIVATE ${CMAKE_BINARY_DIR}/include/nn INTERFACE backend/cuda/emulated)
target_link_libraries(weir_nn_emulated PRIVATE weir_nn weir_base Threads::Threads m)

weir_test_programs(nn "backend/cuda/library_test.c;backend/cuda/conv_choices_test.c;backend/cuda/gpu_group_test.c" "" "" ${CMAKE_BINARY_DIR}/include/nn
  "weir_nn;weir_base;weir_dep_dnnl" "")

# A libnccl.so.2 that these two load.
if(TARGET nn_library_test)
  set(fake ${CMAKE_BINARY_DIR}/fake_nccl)
  add_library(nn_fake_nccl MODULE EXCLUDE_FROM_ALL backend/cuda/emulated/fake_nccl.c)
  target_include_directories(nn_fake_nccl PRIVATE ${CMAKE_BINARY_DIR}/include/nn)
  set_target_properties(nn_fake_nccl PROPERTIES PREFIX "" OUTPUT_NAME libnccl.so SUFFIX .2 LIBRARY_OUTPUT_DIRECTORY ${fake})
  foreach(test nn_library_test nn_gpu_group_test)
    target_compile_definitions(${test} PRIVATE FAKE_NCCL_FOLDER="${fake}")
    add_dependencies(${test} nn_fake_nccl)
  endforeach()
endif()

# Only where NVIDIA's headers are: is cuda_abi.h as they are?
find_path(WEIR_CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include)
find_path(WEIR_NVRTC_INCLUDE nvrtc.h PATHS /usr/local/cuda/include)
find_path(WEIR_CUDART_INCLUDE crt/host_defines.h PATHS /usr/local/cuda/include)
find_path(WEIR_CUDNN_INCLUDE cudnn.h PATHS /usr/local/cuda/include)
if(WEIR_CUDA_INCLUDE AND WEIR_NVRTC_INCLUDE AND WEIR_CUDART_INCLUDE AND WEIR_CUDNN_INCLUDE AND NOT WEIR_FUZZ)
  message(STATUS "found    CUDA's and cuDNN's headers: nn/abi_test compares ours with them")
  add_executable(nn_abi_test backend/cuda/abi_test.c)
  target_include_directories(nn_abi_test SYSTEM PRIVATE
    ${WEIR_CUDA_INCLUDE} ${WEIR_NVRTC_INCLUDE} ${WEIR_CUDART_INCLUDE} ${WEIR_CUDNN_INCLUDE})
  target_compile_options(nn_abi_test PRIVATE -Wno-deprecated-declarations)
  find_path(WEIR_NCCL_INCLUDE nccl.h PATHS /usr/local/cuda/include)
  if(WEIR_NCCL_INCLUDE)
    target_include_directories(nn_abi_test SYSTEM PRIVATE ${WEIR_NCCL_INCLUDE})
    target_compile_definitions(nn_abi_test PRIVATE WEIR_HAVE_NCCL_H)
  endif()
  add_dependencies(unit-tests nn_abi_test)
  add_test(NAME nn/abi_test COMMAND nn_abi_test)
  set_tests_properties(nn/abi_test PROPERTIES LABELS "unit;nn")
endif()
