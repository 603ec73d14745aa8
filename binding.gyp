{
  # CMakeLists.txt is the build; this hands tools that only know gyp over to it. The setup runs
  # cmake-js once llama.cpp's source is there.
  "targets": [
    {
      "target_name": "fermata",
      "type": "none",
      "actions": [
        {
          "action_name": "cmake-js",
          "inputs": ["CMakeLists.txt"],
          "outputs": ["build/Release/fermata.node"],
          "action": ["node", "scripts/setup.mjs"]
        }
      ]
    }
  ]
}
