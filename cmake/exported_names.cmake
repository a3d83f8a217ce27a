# Names that a shared library defines stay inside it unless exported_names.map lists them. Libraries with sanitizers, which are not
# installed, keep the linker's default.
function(gradus_exported_names target)
  if(GRADUS_SANITIZE)
    return()
  endif()
  set(names ${PROJECT_SOURCE_DIR}/cmake/exported_names.map)
  target_link_options(${target} PRIVATE LINKER:--version-script,${names})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${names})
endfunction()
