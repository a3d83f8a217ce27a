# LLVM inside the library, seen by nobody: two LLVMs in one process that see each other's names crash, and others export
# theirs (TensorFlow). The archives' names are hidden, and so are those of LLVM's inline functions, which stand in the
# library's own objects: see gradus_exported_names.
function(gradus_link_llvm target is_static)
  if(NOT is_static)
    target_link_libraries(${target} PRIVATE LLVM)
    return()
  endif()
  set(processors ${LLVM_NATIVE_ARCH})
  if(GRADUS_OBJECTS_FOR_AARCH64)
    list(APPEND processors AArch64)
  endif()
  llvm_map_components_to_libnames(archives ${processors} OrcJIT MCJIT RuntimeDyld ExecutionEngine Passes BitWriter Object
                                  Target)
  target_link_libraries(${target} PRIVATE ${archives})
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--as-needed)
endfunction()
